// Sums over the replicas of what lies in the gradient arena, bucket by bucket: by the all-reduce of exchange.algorithm,
// in the format of exchange.codec. Strategies put gradients there, or weights. With exchange.reduction = "adasum"
// gradients are combined parameter by parameter (comm/collective/adasum.hpp), running statistics averaged.
//
// Messages and bytes of a bucket: the price list's (comm/collective/price.cpp), the codec's or Adasum's. Host memory:
// none on host devices, an arena of pinned memory on others; the codec's residuals.
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
  // Takes the channels [first_channel, first_channel + channels()); what it is given outlives it, `config` excepted.
  // ConfigError where algorithm, codec, dtype, transport and ranks do not go together.
  BucketSums(const ExchangeConfig& config, const StrategyContext& context, std::vector<ArenaRange> buckets,
             int first_channel);

  std::size_t size() const { return buckets_.size(); }
  ArenaRange range(std::size_t b) const { return buckets_[b]; }
  int channels() const { return static_cast<int>(buckets_.size()) + 1; }
  Staging& staging() { return staging_; }

  // Bucket b of the arena is final, once the device's queue has passed. The codec draws by `step`. `share`: this
  // replica's part of the step's samples, by which Adasum averages running statistics. Never waits.
  void submit(std::size_t b, std::int64_t step, double share = 1);
  // Returns once the sums lie in the arena, or are on their way there in the device's queue; adds bytes, the wait and
  // times to `account`. One replica: at once.
  void settle(std::size_t b, StepAccount& account);

  // Both, of all buckets.
  void sum(std::int64_t step, StepAccount& account);

  CodecRecord record() { return codec_.record(); }
  void gather_state() { codec_.gather_state(); }
  void visit_state(StateVisitor& visitor) { codec_.visit_state(visitor); }
  // Bytes that all ranks together send for all buckets, once; NaN where they depend on the values.
  double formula_bytes() const;
  // "ring all-reduce coded as fp16"
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
  std::vector<ArenaRange> buckets_;  // from the arena's end
  int first_channel_;
  std::string algorithm_text_;
  bool priority_;
  Staging staging_;
  GradientCodec codec_;
  std::vector<std::shared_ptr<AdasumForm>> adasum_;  // by bucket; empty where gradients are summed
  std::vector<std::shared_ptr<const Plan>> adasum_plans_;
  std::vector<Ticket> tickets_;  // by bucket
};

}  // namespace echelon::inline exchange
