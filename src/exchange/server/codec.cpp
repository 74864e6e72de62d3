#include "exchange/server/codec.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash_rng.hpp"
#include "comm/collective/server.hpp"
#include "device/vector.hpp"
#include "exchange/buckets.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
std::size_t bytes_of(ArenaRange range) { return index(range.elems()) * sizeof(float); }

double squares(const float* values, std::int64_t n) {
  return host_vector_ops().sum_squares(DType::f32, values, index(n));
}

}  // namespace

ServerCodec::ServerCodec(const ExchangeConfig& config, const StrategyContext& context,
                         const std::vector<PartitionedBucket>& buckets)
    : name_(config.codec),
      context_(context),
      workers_(server_workers(buckets.front().request)),
      feedback_(config.error_feedback),
      warmup_steps_(config.codec_warmup_steps),
      step_(buckets.size()),
      tally_(buckets.size()) {
  for (const PartitionedBucket& bucket : buckets) buckets_.push_back(bucket.range);
  if (!on()) return;
  if (lossy())
    for (std::vector<float>* arena : {&residual_, &master_, &changes_, &working_})
      arena->resize(index(context.arenas.elems()));
  for (const auto& [bucket, request] : buckets) {
    const Parts parts = server_parts(request);
    const ElemRange own = parts[index(request.rank)];
    own_.push_back({bucket.begin + own.begin, bucket.begin + own.end});
    forms_.push_back({make_form(config, bucket, parts, true), make_form(config, bucket, parts, false)});
    formula_bytes_ += coded_server_bytes(*forms_.back().push, request);
  }
  if (warmup_steps_ > 0) formula_bytes_ = std::numeric_limits<double>::quiet_NaN();
}

std::unique_ptr<ServerForm> ServerCodec::make_form(const ExchangeConfig& config, ArenaRange bucket, const Parts& parts,
                                                   bool push) {
  std::span<float> residual;
  if (push && lossy()) residual = std::span(residual_).subspan(index(bucket.begin), index(bucket.elems()));
  return ServerForm::make(config, context_.arenas.parameters(), context_.arenas.dtype(), bucket, parts, residual,
                          !push);
}

std::vector<ElemRange> ServerCodec::statistics_of(ArenaRange bucket) const {
  return lossy() ? statistics_in(context_.arenas.parameters(), bucket) : std::vector<ElemRange>();
}

void ServerCodec::read(float* to, ArenaRange range) const {
  if (range.elems() > 0) context_.arenas.device().to_host(to, context_.arenas.weights_at(range.begin), bytes_of(range));
}

void ServerCodec::write(const float* from, ArenaRange range) const {
  if (range.elems() > 0)
    context_.arenas.device().to_device(context_.arenas.weights_at(range.begin), from, bytes_of(range));
}

void ServerCodec::begin_master() {
  if (std::exchange(master_begun_, true)) return;
  read(master_.data(), {0, context_.arenas.elems()});
}

template <class Do>
void ServerCodec::each_statistic(std::size_t b, ArenaRange range, const Do& act) const {
  const std::int64_t begin = buckets_[b].begin;
  for (const ElemRange& all : statistics_of(buckets_[b]))
    for (std::int64_t i = std::max(range.begin, begin + all.begin); i < std::min(range.end, begin + all.end); ++i)
      act(i);
}

void ServerCodec::before_push(std::size_t b, std::int64_t step) {
  if (!on()) return;
  step_[b] = step;
  if (pending_residuals_ > 0) {
    --pending_residuals_;
    const ArenaRange unsent = ranks() == 1 ? buckets_[b] : own_[b];
    release_residual(context_.arenas.device(), context_.arenas.gradients_at(unsent.begin),
                     residual_.data() + unsent.begin, unsent.elems());
  }
  if (ranks() == 1) return;
  if (!codes(b)) {
    master_begun_ = false;  // the weights are exact
    return;
  }
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  const HashRng random = HashRng(context_.seed, "codec").at(word(step)).at(word(context_.engine.rank()));
  const HashRng of_bucket = random.at(bucket_key(context_.arenas.parameters(), buckets_[b]));
  if (lossy() && !feedback_) std::fill_n(residual_.begin() + buckets_[b].begin, buckets_[b].elems(), 0.0f);
  forms_[b].push->begin_step(of_bucket.key());
  forms_[b].pull->begin_step(of_bucket.key());
}

void ServerCodec::before_update(std::size_t b) {
  if (!lossy()) return;
  if (ranks() == 1) {
    if (pending_masters_ > 0) --pending_masters_, write(master_.data() + buckets_[b].begin, buckets_[b]);
    return;
  }
  if (!sends_changes(b)) return;
  begin_master();
  const ArenaRange own = own_[b];
  read(working_.data() + own.begin, own);
  write(master_.data() + own.begin, own);
}

void ServerCodec::after_update(std::size_t b) {
  if (!sends_changes(b)) return;
  const ArenaRange own = own_[b];
  read(master_.data() + own.begin, own);
  write(working_.data() + own.begin, own);
  for (std::int64_t i = own.begin; i < own.end; ++i) changes_[index(i)] = master_[index(i)] - working_[index(i)];
  each_statistic(b, own, [&](std::int64_t i) { changes_[index(i)] = master_[index(i)]; });
}

void ServerCodec::finish(std::size_t b) {
  if (!codes(b) || ranks() == 1) return;
  tally_.add(forms_[b].push->take_encoded());
  tally_.add(forms_[b].pull->take_encoded());
  if (lossy()) follow(b);
}

// The working copy takes the change: of the whole bucket, on a server alone of its part.
void ServerCodec::follow(std::size_t b) {
  const ArenaRange own = own_[b], range = works() ? buckets_[b] : own;
  float* working = working_.data() + range.begin;
  read(working, range);
  host_vector_ops().add(DType::f32, working, changes_.data() + range.begin, index(range.elems()));
  each_statistic(b, range, [&](std::int64_t i) { working[i - range.begin] = changes_[index(i)]; });
  write(working, range);
  double residual = squares(residual_.data() + range.begin, range.elems());
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const double left = static_cast<double>(master_[index(i)]) - static_cast<double>(working[i - range.begin]);
    residual += left * left;
  }
  tally_.set_residual(b, residual);
}

void ServerCodec::visit_state(StateVisitor& visitor) {
  if (!lossy()) return;
  visit_residual(visitor, "residual", context_.arenas.parameters(), residual_.data(),
                 {context_.engine.rank(), workers_});
  if (!visitor.loading()) {
    begin_master();
    if (ranks() == 1 && pending_masters_ == 0) read(master_.data(), {0, context_.arenas.elems()});
  }
  visit_whole(visitor, "master", context_.arenas.parameters(), master_.data());
  std::vector<Codec*> codecs;
  for (const Forms& forms : forms_)
    for (ServerForm* form : {forms.push.get(), forms.pull.get()})
      for (ServerForm::Part& part : form->parts()) codecs.push_back(part.codec.get());
  visit_taus(visitor, "codec_tau" + context_.part, codecs, {context_.engine.rank(), ranks()});
  if (!visitor.loading()) return;
  if (!feedback_) std::fill(residual_.begin(), residual_.end(), 0.0f);
  master_begun_ = true;
  pending_residuals_ = buckets_.size();
  if (ranks() == 1) pending_masters_ = buckets_.size();
}

}  // namespace echelon::inline exchange
