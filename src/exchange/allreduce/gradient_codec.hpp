// What exchange.codec asks of a strategy that sums gradients bucket by bucket: for each bucket a codec, the plan that
// it needs, and the residuals, which are state; without exchange.error_feedback they are dropped before the next step.
// In the first exchange.codec_warmup_steps of a run gradients travel as they are, by exchange.algorithm.
//
// Where gradients lie on a device that encodes and decodes by itself, so does their residual, and messages are staged
// (comm/codec/device_bucket.hpp); sums that are encoded again have theirs on the host.
//
// Running statistics of batch norm lie in the gradient arena but are not gradients: where the codec loses anything they
// travel apart, as they are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/codec/device_bucket.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce/exact_part.hpp"
#include "exchange/kit/error_feedback.hpp"
#include "exchange/staging.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class GradientCodec {
 public:
  // `request` is the all-reduce of any bucket; its elems are set here. `channel`: one of its own. ConfigError where
  // codec and algorithm, or codec and dtype, do not go together.
  GradientCodec(const ExchangeConfig& config, const StrategyContext& context, AllreduceRequest request,
                std::vector<ArenaRange> buckets, int channel);

  bool on() const { return feedback_.on(); }

  // Of bucket b, once `before` was told its step: its plan, what its messages look like (null: as they are), and the
  // bytes that all ranks together send by formula, NaN where that depends on the values or on the step.
  std::shared_ptr<const Plan> plan(std::size_t b) const { return warms_up(b) ? warmup_plans_[b] : plans_[b]; }
  std::shared_ptr<WireForm> form(std::size_t b) const;
  double formula_bytes() const { return formula_bytes_; }

  // Before bucket b is fetched for its plan (one replica: before it is applied).
  void before(std::size_t b, std::int64_t step);
  // Enqueues what brings it to the host, where its plan reads and writes `staging`; null: it is there.
  std::shared_ptr<const Event> fetch(std::size_t b, Staging& staging);
  // After its plan is done: reports the traffic beside the plan; then what enqueues its way back into the arena.
  WireCounters after(std::size_t b, Staging& staging);
  void store(std::size_t b, Staging& staging);
  // Of this replica and the buckets that are done since the last call.
  CodecRecord record() { return feedback_.record(); }

  // Residuals of sums, from the owners of parts to all ranks.
  void gather_state();
  void visit_state(StateVisitor& visitor);
  // "ring all-reduce coded as fp16"
  std::string describe(std::string_view algorithm) const;

 private:
  std::shared_ptr<const Plan> make_plan(const AllreduceRequest& request) const;
  void add_form(const ExchangeConfig& config, ArenaRange range, const AllreduceRequest& request);
  bool warms_up(std::size_t b) const { return on() && !feedback_.codes(b); }
  bool lossy() const { return feedback_.lossy(); }
  int ranks() const { return context_.engine.size(); }
  void release_residuals(std::size_t b);
  void drop_residuals(std::size_t b);  // of what this rank sends, and of its sums
  void clear_residual_of_statistics(ArenaRange bucket);
  // Null where bucket b travels by the host's memory.
  DeviceBucket* on_device(std::size_t b) const {
    return device_forms_.empty() || warms_up(b) ? nullptr : device_forms_[b].get();
  }
  double residual_squares(std::size_t b);

  std::string name_, algorithm_;
  StrategyContext context_;
  ErrorFeedback feedback_;
  std::vector<std::shared_ptr<const Plan>> plans_, warmup_plans_;
  std::vector<std::shared_ptr<CodedBucket>> forms_;          // empty where off
  std::vector<std::shared_ptr<DeviceBucket>> device_forms_;  // the same, where the device encodes; else empty
  ExactPart exact_;
  Residual sum_residual_;    // of this rank's sums, in the parts that it owns
  std::vector<double> tau_;  // by bucket
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
