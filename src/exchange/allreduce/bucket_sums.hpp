// SPDX-License-Identifier: Apache-2.0
// Sums the gradient arena over the replicas, bucket by bucket, with the all-reduce of exchange.algorithm and the wire
// format of exchange.codec. Strategies put gradients or weights there. With exchange.reduction = "adasum" gradients are
// combined parameter by parameter (comm/collective/adasum.hpp), and running statistics are averaged.
//
// The price list (comm/collective/price.cpp), the codec or Adasum gives the messages and bytes of a bucket. Host
// memory: the codec's residuals and, unless the device is a host device, an arena of pinned memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/adasum.hpp"
#include "exchange/allreduce/gradient_codec.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class BucketSums {
 public:
  // Uses the channels [first_channel, first_channel + channels()). The arguments except `config` must outlive this
  // object. Throws ConfigError if algorithm, codec, dtype, transport and ranks cannot be combined.
  BucketSums(const ExchangeConfig& config, const StrategyContext& context, std::vector<ArenaRange> buckets,
             int first_channel);

  std::size_t size() const { return buckets_.size(); }
  ArenaRange range(std::size_t b) const { return buckets_[b]; }
  int channels() const { return static_cast<int>(buckets_.size()) + 1; }
  Staging& staging() { return staging_; }

  // Starts the sum of bucket b, whose values are final once the device's queue has passed. The codec derives its random
  // draws from `step`. `share` is this replica's share of the step's samples, which weighs running statistics under
  // Adasum. Never waits for another rank.
  void submit(std::size_t b, std::int64_t step, double share = 1);
  // Waits for the sum; afterwards it is in the arena, or its copy to the arena is enqueued on the device. Adds the
  // traffic, the wait and the times to `account`. With one replica it returns at once.
  void settle(std::size_t b, StepAccount& account);

  // Submits and settles all buckets.
  void sum(std::int64_t step, StepAccount& account);

  CodecRecord record() { return codec_.record(); }
  void gather_state() { codec_.gather_state(); }
  void visit_state(StateVisitor& visitor) { codec_.visit_state(visitor); }
  // The bytes that all ranks together send for all buckets once; NaN if they depend on the values.
  double formula_bytes() const;
  // Returns for instance "ring all-reduce coded as fp16".
  std::string describe() const {
    return adasum_.empty() ? codec_.describe(algorithm_text_) : "Adasum along a butterfly";
  }

 private:
  static AllreduceRequest request_of(const ExchangeConfig& config, const StrategyContext& context);
  int replicas() const { return context_.engine.size(); }
  AllreduceRequest request_of_bucket(std::size_t b) const;
  void add_adasum();
  void weigh_statistics(ArenaRange bucket, double share);

  StrategyContext context_;
  std::vector<ArenaRange> buckets_;  // from the end of the arena on
  int first_channel_;
  std::string algorithm_text_;
  bool priority_;
  Staging staging_;
  GradientCodec codec_;
  std::vector<std::shared_ptr<AdasumForm>> adasum_;  // by bucket; empty if gradients are summed
  std::vector<std::shared_ptr<const Plan>> adasum_plans_;
  std::vector<Ticket> tickets_;  // by bucket
};

}  // namespace echelon::inline exchange
