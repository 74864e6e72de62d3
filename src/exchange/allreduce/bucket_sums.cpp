// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/bucket_sums.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/spans.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce_request.hpp"

namespace echelon::inline exchange {

AllreduceRequest BucketSums::request_of(const ExchangeConfig& config, const StrategyContext& context) {
  const Transport& transport = context.engine.transport();
  if (algorithm_traits(config.algorithm).library && transport.size() > 1 && !transport.has_library_allreduce())
    throw ConfigError(
        fmt::format("exchange.algorithm '{}' needs a message library, but transport {} has none; nearest valid: 'ring'",
                    config.algorithm, transport.name()));
  if (sums_in_memory(config) && transport.size() > 1 && !transport.shares_channels())
    throw ConfigError(fmt::format(
        "exchange.algorithm '{}' sums in memory that ranks share, but transport {} has none; nearest valid: 'ring'",
        algorithm_text(config, transport.size()), transport.name()));
  AllreduceRequest request = allreduce_request(config, transport.hosts(), context.arenas.dtype());
  request.rank = transport.rank();
  return request;
}

BucketSums::BucketSums(const ExchangeConfig& config, const StrategyContext& context, std::vector<ArenaRange> buckets,
                       int first_channel)
    : context_(context),
      buckets_(std::move(buckets)),
      first_channel_(first_channel),
      algorithm_text_(algorithm_text(config, context.engine.size())),
      priority_(config.priority && !algorithm_traits(config.algorithm).library),  // a library needs one fixed order
      staging_(context.arenas.device(), context.arenas.gradients_at(0), context.arenas.elems(), context.arenas.dtype()),
      codec_(config, context, request_of(config, context), buckets_, first_channel + static_cast<int>(buckets_.size())),
      tickets_(buckets_.size()) {
  if (config.reduction == Reduction::adasum) add_adasum();
}

AllreduceRequest BucketSums::request_of_bucket(std::size_t b) const {
  return {.rank = context_.engine.rank(), .ranks = replicas(), .elems = buckets_[b].elems()};
}

void BucketSums::add_adasum() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const ArenaRange bucket = buckets_[b];
    std::vector<AdasumForm::Part> parts;
    for (const Parameter& p : context_.arenas.parameters().all())
      if (p.begin >= bucket.begin && p.end() <= bucket.end)
        parts.push_back({{p.begin - bucket.begin, p.end() - bucket.begin}, p.kind == ParameterKind::statistic});
    adasum_.push_back(std::make_shared<AdasumForm>(context_.arenas.dtype(), context_.engine.rank(), replicas(),
                                                   bucket.elems(), std::move(parts)));
    adasum_plans_.push_back(make_adasum(request_of_bucket(b)));
  }
}

void BucketSums::weigh_statistics(ArenaRange bucket, double share) {
  for (const Parameter& p : context_.arenas.parameters().all())
    if (p.kind == ParameterKind::statistic && p.begin >= bucket.begin && p.end() <= bucket.end)
      context_.arenas.device().vector_ops().scale(context_.arenas.dtype(), context_.arenas.gradients_at(p.begin), share,
                                                  static_cast<std::size_t>(p.elems()));
}

double BucketSums::formula_bytes() const {
  if (adasum_.empty()) return codec_.formula_bytes();
  double elems = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    elems += static_cast<double>(price_adasum(request_of_bucket(b)).payload_elems);
  return elems * static_cast<double>(size_of(context_.arenas.dtype()));
}

void BucketSums::submit(std::size_t b, std::int64_t step, double share) {
  codec_.before(b, step);
  if (replicas() == 1) return;
  if (!adasum_.empty()) weigh_statistics(buckets_[b], share);
  Job job;
  job.plan = adasum_.empty() ? codec_.plan(b) : adasum_plans_[b];
  job.form = adasum_.empty() ? codec_.form(b) : adasum_[b];
  job.after = codec_.fetch(b, staging_);
  job.data = staging_.at(buckets_[b].begin);
  job.dtype = context_.arenas.dtype();
  job.channel = first_channel_ + static_cast<int>(b);
  // The next forward needs buckets nearer to the model's input first.
  job.priority = priority_ ? static_cast<int>(buckets_.size() - 1 - b) : 0;
  tickets_[b] = context_.engine.submit(std::move(job));
}

void BucketSums::settle(std::size_t b, StepAccount& account) {
  if (replicas() == 1) return;
  {
    const SpanTimer timer(account.outcome().exchange_wait_s, SpanKind::exchange_wait);
    tickets_[b].wait();
    account.note_sent(tickets_[b].wire());
    account.note_sent(codec_.after(b, staging_));
  }
  const SpanTimer timer(account.outcome().optimiser_s, SpanKind::optimiser);
  account.note_times(tickets_[b], static_cast<std::int64_t>(b));
  codec_.store(b, staging_);
}

void BucketSums::sum(std::int64_t step, StepAccount& account) {
  for (std::size_t b = 0; b < size(); ++b) submit(b, step);
  for (std::size_t b = 0; b < size(); ++b) settle(b, account);
}

}  // namespace echelon::inline exchange
