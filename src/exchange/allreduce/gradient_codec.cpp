// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/gradient_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/codec/coded_rows.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {
namespace {

void check_together(const ExchangeConfig& config, const StrategyContext& context) {
  const CodecInfo& info = codec_info(config.codec);
  if (algorithm_traits(config.algorithm).library && context.engine.size() > 1)
    throw ConfigError(
        fmt::format("exchange.codec '{}' cannot be combined with exchange.algorithm '{}': the library sums uncoded "
                    "values; nearest valid: 'ring'",
                    config.codec, config.algorithm));
  if (sums_in_memory(config) && context.engine.size() > 1)
    throw ConfigError(
        fmt::format("exchange.codec '{}' cannot be combined with sums in shared memory, which are of uncoded values; "
                    "nearest valid: 'ring'",
                    config.codec));
  if (info.lossy && context.arenas.dtype() != DType::f32)
    throw ConfigError(fmt::format("exchange.codec '{}' takes gradients of f32, these are {}; 'lossless' takes both",
                                  config.codec, name_of(context.arenas.dtype())));
}

// Shards of a stage hold different statistics in addition to those that all of them must sum with the same bits.
// `naive` adds in the order of ranks, whatever the index of a value.
std::string exact_algorithm(const ExchangeConfig& config, const ParameterSet& parameters) {
  const auto& all = parameters.all();
  const bool whole = std::all_of(all.begin(), all.end(), [](const Parameter& p) { return p.shared(); });
  return whole ? config.algorithm : "naive";
}

// Returns the device that encodes and holds the residual; null if the host does.
Device* encoder_of(const StrategyContext& context) {
  Device& device = context.arenas.device();
  return context.engine.size() > 1 && !device.on_host() ? &device : nullptr;
}

}  // namespace

PartCodecs codecs_of(const ExchangeConfig& config, const ParameterSet& parameters, DType dtype, ArenaRange range,
                     const AllreduceRequest& request) {
  return {route_of(config), request, [&](ElemRange part) {
            const ArenaRange coded{range.begin + part.begin, range.begin + part.end};
            return make_codec(config.codec, codec_options(config, dtype, coded_rows(parameters, coded), request.ranks));
          }};
}

GradientCodec::GradientCodec(const ExchangeConfig& config, const StrategyContext& context, AllreduceRequest request,
                             std::vector<ArenaRange> buckets, int channel)
    : name_(config.codec),
      algorithm_(config.algorithm),
      route_(route_of(config)),
      context_(context),
      feedback_(config, context.arenas.parameters(), std::move(buckets), context.seed, encoder_of(context)),
      exact_(context, exact_algorithm(config, context.arenas.parameters()), request, channel,
             context.engine.size() > 1 && lossy()),
      formula_bytes_(exact_.formula_bytes()) {
  if (on()) check_together(config, context);
  if (lossy() && route_ == CodecRoute::direct) sum_residual_ = Residual(context.arenas.elems());
  tau_.resize(feedback_.buckets().size());
  for (const ArenaRange& range : feedback_.buckets()) {
    request.elems = range.elems();
    plans_.push_back(make_plan(request));
    if (feedback_.warmup_steps() > 0) warmup_plans_.push_back(make_allreduce(algorithm_, request));
    if (on())
      add_form(config, range, request);
    else
      formula_bytes_ += static_cast<double>(price_allreduce(algorithm_, request).payload_elems) *
                        static_cast<double>(size_of(context.arenas.dtype()));
  }
  formula_bytes_ = feedback_.formula_bytes(formula_bytes_);
}

std::shared_ptr<const Plan> GradientCodec::make_plan(const AllreduceRequest& request) const {
  if (route_ == CodecRoute::direct) return make_direct_allreduce(request);
  return make_allreduce(route_ == CodecRoute::gather ? "naive" : algorithm_, request);
}

void GradientCodec::add_form(const ExchangeConfig& config, ArenaRange range, const AllreduceRequest& request) {
  PartCodecs codecs = codecs_of(config, context_.arenas.parameters(), context_.arenas.dtype(), range, request);
  formula_bytes_ += codecs.bytes(algorithm_, request);
  const ElemRange own = even_part(range.elems(), request.ranks, request.rank);
  const std::span<float> sum_residual = sum_residual_.on_host({range.begin + own.begin, range.begin + own.end});
  if (feedback_.residual().on_device()) {
    auto* of_bucket = reinterpret_cast<float*>(feedback_.residual().at(range.begin));
    device_forms_.push_back(
        DeviceBucket::make(context_.arenas.device(), std::move(codecs), request, of_bucket, sum_residual));
    ECHELON_CHECK(device_forms_.back(), "device {} does not encode as {}", context_.arenas.device().name(), name_);
    forms_.push_back(device_forms_.back());
    return;
  }
  forms_.push_back(std::make_shared<CodedBucket>(std::move(codecs), range.elems(), feedback_.residual().on_host(range),
                                                 sum_residual, own.begin));
}

std::shared_ptr<WireForm> GradientCodec::form(std::size_t b) const {
  return forms_.empty() || warms_up(b) ? nullptr : std::shared_ptr<WireForm>(forms_[b]);
}

void GradientCodec::before(std::size_t b, std::int64_t step) {
  if (!on()) return;
  feedback_.begin_step(b, step);
  if (ranks() == 1) return release_residuals(b);
  if (warms_up(b)) return;
  forms_[b]->begin_step(feedback_.key(b, step, context_.engine.rank()));
  exact_.take(feedback_.bucket(b));
  if (feedback_.drops()) return drop_residuals(b);
  clear_residual_of_statistics(feedback_.bucket(b));
}

// Discards what a codec decodes at the indices of statistics (1 bit has no zero), so that it is not saved.
void GradientCodec::clear_residual_of_statistics(ArenaRange bucket) {
  if (!lossy()) return;
  for (const Parameter& parameter : context_.arenas.parameters().all()) {
    if (parameter.kind != ParameterKind::statistic || parameter.begin < bucket.begin || parameter.end() > bucket.end)
      continue;
    feedback_.residual().clear({parameter.begin, parameter.end()});
  }
}

void GradientCodec::drop_residuals(std::size_t b) {
  feedback_.residual().clear(feedback_.bucket(b));
  sum_residual_.clear(feedback_.bucket(b));
}

std::shared_ptr<const Event> GradientCodec::fetch(std::size_t b, Staging& staging) {
  if (DeviceBucket* bucket = on_device(b))
    return bucket->encode_gradients(static_cast<const float*>(context_.arenas.gradients_at(feedback_.bucket(b).begin)));
  return staging.fetch(feedback_.bucket(b));
}

void GradientCodec::store(std::size_t b, Staging& staging) {
  if (!on_device(b)) staging.store(feedback_.bucket(b));
}

WireCounters GradientCodec::after(std::size_t b, Staging& staging) {
  if (!on() || warms_up(b)) return {};
  const CodedBucket& form = *forms_[b];
  const auto n = static_cast<double>(feedback_.bucket(b).elems());
  feedback_.tally().add({.bytes_before = form.bytes_before(),
                         .bytes_after = form.bytes_after(),
                         .values = n,
                         .density = n * form.codec().density(),
                         .tau = n * form.codec().tau(),
                         .seconds = form.seconds()});
  feedback_.tally().set_residual(b, residual_squares(b));
  if (!on_device(b)) return exact_.put(feedback_.bucket(b), staging.at(feedback_.bucket(b).begin));
  on_device(b)->decode_gradients(static_cast<float*>(context_.arenas.gradients_at(feedback_.bucket(b).begin)));
  return exact_.put(feedback_.bucket(b), nullptr);
}

double GradientCodec::residual_squares(std::size_t b) {
  const ArenaRange range = feedback_.bucket(b);
  const ElemRange own = even_part(range.elems(), ranks(), context_.engine.rank());
  double squares = on_device(b) ? on_device(b)->residual_norms().squares : 0;
  squares += feedback_.residual().squares(range);
  return squares + sum_residual_.squares({range.begin + own.begin, range.begin + own.end});
}

// A single replica adds its whole residual, which includes those of earlier replicas.
void GradientCodec::release_residuals(std::size_t b) {
  if (!feedback_.take_loaded(b)) return;
  const ArenaRange range = feedback_.bucket(b);
  for (Residual* residual : {&feedback_.residual(), &sum_residual_})
    residual->release(context_.arenas.device(), context_.arenas.gradients_at(range.begin), range);
}

void GradientCodec::gather_state() {
  if (sum_residual_.empty() || ranks() == 1) return;
  for (std::size_t b = 0; b < feedback_.buckets().size(); ++b) {
    std::vector<std::int64_t> parts;
    for (int rank = 0; rank < ranks(); ++rank)
      parts.push_back(even_part(feedback_.bucket(b).elems(), ranks(), rank).elems());
    context_.engine.run({.plan = make_allgather_blocks(context_.engine.rank(), parts),
                         .data = sum_residual_.at(feedback_.bucket(b).begin),
                         .dtype = DType::f32,
                         .channel = context_.first_channel + static_cast<int>(b),
                         .after = nullptr});
  }
}

void GradientCodec::visit_state(StateVisitor& visitor) {
  if (!lossy()) return;
  const ReplicaPosition position{context_.engine.rank(), ranks()};
  feedback_.visit_state(visitor, position);
  const ParameterSet& parameters = context_.arenas.parameters();
  const ArenaRange all{0, parameters.elems()};
  if (!sum_residual_.empty()) visit_whole(visitor, "owed_sums", parameters, sum_residual_.on_host(all).data());
  for (std::size_t b = 0; b < forms_.size(); ++b) tau_[b] = forms_[b]->codec().tau();
  visit_by_replica(visitor, "codec_tau" + context_.part, tau_, position);
  if (visitor.loading())
    for (std::size_t b = 0; b < forms_.size(); ++b) forms_[b]->codec().set_tau(tau_[b]);
  if (visitor.loading() && feedback_.drops()) sum_residual_.clear(all);
}

std::string GradientCodec::describe(std::string_view algorithm) const {
  const std::string plain = fmt::format("{} all-reduce", algorithm);
  if (!on()) return plain;
  std::string coded;
  switch (route_) {
    case CodecRoute::any: coded = fmt::format("{} coded as {}", plain, name_); break;
    case CodecRoute::direct:
      coded = "reduce-scatter and all-gather to and from the owners of parts, coded as " + name_;
      break;
    case CodecRoute::gather: coded = "all-gather of messages coded as " + name_; break;
  }
  if (feedback_.drops()) coded += " without error feedback";
  if (feedback_.warmup_steps() == 0) return coded;
  return fmt::format("{} before step {}, then {}", plain, count_text(feedback_.warmup_steps()), coded);
}

}  // namespace echelon::inline exchange
