#include "exchange/allreduce/bucket_sums.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce_request.hpp"

namespace echelon::inline exchange {

AllreduceRequest BucketSums::request_of(const ExchangeConfig& config, const StrategyContext& context) {
  const Transport& transport = context.engine.transport();
  if (algorithm_traits(config.algorithm).library && transport.size() > 1 && !transport.has_library_allreduce())
    throw ConfigError(fmt::format("exchange.algorithm '{}' needs a message library; transport {} has none; ring fits",
                                  config.algorithm, transport.name()));
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
      priority_(config.priority && !algorithm_traits(config.algorithm).library),  // libraries keep one static order
      staging_(context.arenas.device(), context.arenas.gradients_at(0), context.arenas.elems(), context.arenas.dtype()),
      codec_(config, context, request_of(config, context), buckets_, first_channel + static_cast<int>(buckets_.size())),
      tickets_(buckets_.size()) {}

void BucketSums::submit(std::size_t b, std::int64_t step) {
  codec_.before(b, step);
  if (replicas() == 1) return;
  Job job;
  job.plan = codec_.plan(b);
  job.form = codec_.form(b);
  job.after = codec_.fetch(b, staging_);
  job.data = staging_.at(buckets_[b].begin);
  job.dtype = context_.arenas.dtype();
  job.channel = first_channel_ + static_cast<int>(b);
  // Buckets nearer the model's input are needed first.
  job.priority = priority_ ? static_cast<int>(buckets_.size() - 1 - b) : 0;
  tickets_[b] = context_.engine.submit(std::move(job));
}

void BucketSums::settle(std::size_t b, StepAccount& account) {
  if (replicas() == 1) return;
  {
    ScopedTimer timer(account.outcome().exchange_wait_s);
    tickets_[b].wait();
    account.note_sent(tickets_[b].wire());
    account.note_sent(codec_.after(b, staging_));
  }
  ScopedTimer timer(account.outcome().optimiser_s);
  account.note_times(tickets_[b]);
  codec_.store(b, staging_);
}

}  // namespace echelon::inline exchange
