#include "exchange/allreduce/gradient_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/text.hpp"
#include "comm/codec/coded_rows.hpp"
#include "device/vector.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

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

// Shards of a stage hold other statistics beside those that all of them must sum alike: in the order of ranks then,
// wherever a value lies.
std::string exact_algorithm(const ExchangeConfig& config, const ParameterSet& parameters) {
  const auto& all = parameters.all();
  const bool whole = std::all_of(all.begin(), all.end(), [](const Parameter& p) { return p.shared(); });
  return whole ? config.algorithm : "naive";
}

}  // namespace

GradientCodec::GradientCodec(const ExchangeConfig& config, const StrategyContext& context, AllreduceRequest request,
                             std::vector<ArenaRange> buckets, int channel)
    : name_(config.codec),
      algorithm_(config.algorithm),
      context_(context),
      buckets_(std::move(buckets)),
      feedback_(config.error_feedback),
      warmup_steps_(config.codec_warmup_steps),
      step_(buckets_.size()),
      exact_(context, exact_algorithm(config, context.arenas.parameters()), request, channel,
             context.engine.size() > 1 && lossy()),
      tally_(buckets_.size()),
      formula_bytes_(exact_.formula_bytes()) {
  if (on()) check_together(config, context);
  Device& device = context.arenas.device();
  const std::size_t elems = index(context.arenas.elems());
  if (lossy() && ranks() > 1 && !device.on_host())
    device_residual_ = device.allocate(elems * sizeof(float), "codec residual");
  else if (lossy())
    residual_.resize(elems);
  if (lossy() && codec_info(name_).route == CodecRoute::direct) sum_residual_.resize(elems);
  tau_.resize(buckets_.size());
  for (const ArenaRange& range : buckets_) {
    request.elems = range.elems();
    plans_.push_back(make_plan(request));
    if (warmup_steps_ > 0) warmup_plans_.push_back(make_allreduce(algorithm_, request));
    if (on())
      add_form(config, range, request);
    else
      formula_bytes_ += static_cast<double>(price_allreduce(algorithm_, request).payload_elems) *
                        static_cast<double>(size_of(context.arenas.dtype()));
  }
  if (warmup_steps_ > 0) formula_bytes_ = std::numeric_limits<double>::quiet_NaN();
}

std::shared_ptr<const Plan> GradientCodec::make_plan(const AllreduceRequest& request) const {
  const CodecRoute route = on() ? codec_info(name_).route : CodecRoute::any;
  if (route == CodecRoute::direct) return make_direct_allreduce(request);
  return make_allreduce(route == CodecRoute::gather ? "naive" : algorithm_, request);
}

void GradientCodec::add_form(const ExchangeConfig& config, ArenaRange range, const AllreduceRequest& request) {
  auto codec = make_codec(name_, {.dtype = context_.arenas.dtype(),
                                  .ranks = ranks(),
                                  .density = config.density,
                                  .tau = config.tau,
                                  .index_coding = config.index_coding,
                                  .rows = coded_rows(context_.arenas.parameters(), range)});
  formula_bytes_ += coded_bytes(*codec, algorithm_, request);
  const ElemRange own = even_part(range.elems(), request.ranks, request.rank);
  std::span<float> residual, sum_residual;
  if (!residual_.empty()) residual = std::span(residual_).subspan(index(range.begin), index(range.elems()));
  if (!sum_residual_.empty())
    sum_residual = std::span(sum_residual_).subspan(index(range.begin + own.begin), index(own.elems()));
  if (device_residual_.data()) {
    auto* of_bucket = static_cast<float*>(device_residual_.data()) + range.begin;
    device_forms_.push_back(
        DeviceBucket::make(context_.arenas.device(), std::move(codec), request, of_bucket, sum_residual));
    ECHELON_CHECK(device_forms_.back(), "device {} does not encode as {}", context_.arenas.device().name(), name_);
    forms_.push_back(device_forms_.back());
    return;
  }
  forms_.push_back(std::make_shared<CodedBucket>(std::move(codec), range.elems(), residual, sum_residual, own.begin));
}

std::shared_ptr<WireForm> GradientCodec::form(std::size_t b) const {
  return forms_.empty() || warms_up(b) ? nullptr : std::shared_ptr<WireForm>(forms_[b]);
}

void GradientCodec::before(std::size_t b, std::int64_t step) {
  if (!on()) return;
  step_[b] = step;
  if (ranks() == 1) return add_pending_residuals(b);
  if (warms_up(b)) return;
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  const HashRng random = HashRng(context_.seed, "codec").at(word(step)).at(word(context_.engine.rank()));
  forms_[b]->begin_step(random.at(bucket_key(context_.arenas.parameters(), buckets_[b])).key());
  exact_.take(buckets_[b]);
  if (!feedback_) return drop_residuals(b);
  clear_residual_of_statistics(buckets_[b]);
}

// What a codec decodes at their indices (1 bit has no zero) is discarded and not saved.
void GradientCodec::clear_residual_of_statistics(ArenaRange bucket) {
  if (!lossy()) return;
  for (const Parameter& parameter : context_.arenas.parameters().all()) {
    if (parameter.kind != ParameterKind::statistic || parameter.begin < bucket.begin || parameter.end() > bucket.end)
      continue;
    clear_residual({parameter.begin, parameter.end()});
  }
}

void GradientCodec::clear_residual(ArenaRange range) {
  if (device_residual_.data())
    context_.arenas.device().zero(static_cast<float*>(device_residual_.data()) + range.begin,
                                  index(range.elems()) * sizeof(float));
  else
    std::fill_n(residual_.begin() + range.begin, range.elems(), 0.0f);
}

void GradientCodec::drop_residuals(std::size_t b) {
  if (!lossy()) return;
  clear_residual(buckets_[b]);
  if (!sum_residual_.empty()) std::fill_n(sum_residual_.begin() + buckets_[b].begin, buckets_[b].elems(), 0.0f);
}

std::shared_ptr<const Event> GradientCodec::fetch(std::size_t b, Staging& staging) {
  if (DeviceBucket* bucket = on_device(b))
    return bucket->encode_gradients(static_cast<const float*>(context_.arenas.gradients_at(buckets_[b].begin)));
  return staging.fetch(buckets_[b]);
}

void GradientCodec::store(std::size_t b, Staging& staging) {
  if (!on_device(b)) staging.store(buckets_[b]);
}

WireCounters GradientCodec::after(std::size_t b, Staging& staging) {
  if (!on() || warms_up(b)) return {};
  const CodedBucket& form = *forms_[b];
  const auto n = static_cast<double>(buckets_[b].elems());
  tally_.add({.bytes_before = form.bytes_before(),
              .bytes_after = form.bytes_after(),
              .values = n,
              .density = n * form.codec().density(),
              .tau = n * form.codec().tau(),
              .seconds = form.seconds()});
  tally_.set_residual(b, residual_squares(b));
  if (!on_device(b)) return exact_.put(buckets_[b], staging.at(buckets_[b].begin));
  on_device(b)->decode_gradients(static_cast<float*>(context_.arenas.gradients_at(buckets_[b].begin)));
  return exact_.put(buckets_[b], nullptr);
}

double GradientCodec::residual_squares(std::size_t b) const {
  double squares = on_device(b) ? on_device(b)->residual_norms().squares : 0;
  const auto add = [&](const std::vector<float>& residual, std::int64_t begin, std::int64_t elems) {
    if (!residual.empty()) squares += host_vector_ops().sum_squares(DType::f32, residual.data() + begin, index(elems));
  };
  const ElemRange own = even_part(buckets_[b].elems(), ranks(), context_.engine.rank());
  add(residual_, buckets_[b].begin, buckets_[b].elems());
  add(sum_residual_, buckets_[b].begin + own.begin, own.elems());
  return squares;
}

// A single replica adds its whole residual, including that of earlier replicas.
void GradientCodec::add_pending_residuals(std::size_t b) {
  if (pending_residuals_ == 0) return;
  --pending_residuals_;
  Device& device = context_.arenas.device();
  const ArenaRange range = buckets_[b];
  const auto n = index(range.elems());
  for (std::vector<float>* residual : {&residual_, &sum_residual_}) {
    if (residual->empty()) continue;
    float* values = residual->data() + range.begin;
    std::vector<float> sum(n);
    device.to_host(sum.data(), context_.arenas.gradients_at(range.begin), n * sizeof(float));
    host_vector_ops().add(DType::f32, sum.data(), values, n);
    device.to_device(context_.arenas.gradients_at(range.begin), sum.data(), n * sizeof(float));
    host_vector_ops().fill(DType::f32, values, 0, n);
  }
}

void GradientCodec::gather_state() {
  if (sum_residual_.empty() || ranks() == 1) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    std::vector<std::int64_t> parts;
    for (int rank = 0; rank < ranks(); ++rank) parts.push_back(even_part(buckets_[b].elems(), ranks(), rank).elems());
    context_.engine.run({.plan = make_allgather_blocks(context_.engine.rank(), parts),
                         .data = sum_residual_.data() + buckets_[b].begin,
                         .dtype = DType::f32,
                         .channel = context_.first_channel + static_cast<int>(b),
                         .after = nullptr});
  }
}

void GradientCodec::visit_state(StateVisitor& visitor) {
  if (!lossy()) return;
  const ReplicaPosition place{context_.engine.rank(), ranks()};
  Device& device = context_.arenas.device();
  std::vector<float> fetched(device_residual_.bytes() / sizeof(float));
  if (!fetched.empty()) device.to_host(fetched.data(), device_residual_.data(), device_residual_.bytes());
  visit_residual(visitor, "residual", context_.arenas.parameters(), fetched.empty() ? residual_.data() : fetched.data(),
                 place);
  if (!fetched.empty() && visitor.loading())
    device.to_device(device_residual_.data(), fetched.data(), device_residual_.bytes());
  if (!sum_residual_.empty()) visit_whole(visitor, "owed_sums", context_.arenas.parameters(), sum_residual_.data());
  for (std::size_t b = 0; b < forms_.size(); ++b) tau_[b] = forms_[b]->codec().tau();
  visit_by_replica(visitor, "codec_tau" + context_.part, tau_, place);
  if (visitor.loading())
    for (std::size_t b = 0; b < forms_.size(); ++b) forms_[b]->codec().set_tau(tau_[b]);
  if (visitor.loading() && !feedback_)
    for (std::size_t b = 0; b < buckets_.size(); ++b) drop_residuals(b);
  if (visitor.loading() && ranks() == 1) pending_residuals_ = buckets_.size();
}

std::string GradientCodec::describe(std::string_view algorithm) const {
  const std::string plain = fmt::format("{} all-reduce", algorithm);
  if (!on()) return plain;
  std::string coded;
  switch (codec_info(name_).route) {
    case CodecRoute::any: coded = fmt::format("{} coded as {}", plain, name_); break;
    case CodecRoute::direct:
      coded = "reduce-scatter and all-gather to and from the owners of parts, coded as " + name_;
      break;
    case CodecRoute::gather: coded = "all-gather of messages coded as " + name_; break;
  }
  if (lossy() && !feedback_) coded += " without error feedback";
  if (warmup_steps_ == 0) return coded;
  return fmt::format("{} before step {}, then {}", plain, count_text(warmup_steps_), coded);
}

}  // namespace echelon::inline exchange
