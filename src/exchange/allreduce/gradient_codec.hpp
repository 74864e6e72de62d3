// SPDX-License-Identifier: Apache-2.0
// Applies exchange.codec in a strategy that sums gradients bucket by bucket. Each bucket has a codec, the plan that
// this codec needs, and residuals, which are state; without exchange.error_feedback they are dropped before the next
// step. In the first exchange.codec_warmup_steps of a run gradients are sent uncoded, with exchange.algorithm.
//
// If the gradients are on a device that encodes and decodes by itself, the residual is there too, and only messages are
// staged (comm/codec/device_bucket.hpp). The residuals of sums that are encoded again are on the host.
//
// Running statistics of batch norm are in the gradient arena but are not gradients: with a lossy codec they are
// exchanged separately, uncoded.
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

// The codecs that exchange.codec, which is not "none", needs for a bucket: request.elems values, `range` of the arenas.
PartCodecs codecs_of(const ExchangeConfig& config, const ParameterSet& parameters, DType dtype, ArenaRange range,
                     const AllreduceRequest& request);

class GradientCodec {
 public:
  // `request` is the all-reduce of any bucket; its elems are set here. No one else may use `channel`. Throws
  // ConfigError if codec and algorithm, or codec and dtype, cannot be combined.
  GradientCodec(const ExchangeConfig& config, const StrategyContext& context, AllreduceRequest request,
                std::vector<ArenaRange> buckets, int channel);

  bool on() const { return feedback_.on(); }

  // Valid for bucket b after `before`: its plan, and the wire form of its messages (null: uncoded). formula_bytes is
  // what all ranks together send for all buckets; NaN if that depends on the values or on the step.
  std::shared_ptr<const Plan> plan(std::size_t b) const { return warms_up(b) ? warmup_plans_[b] : plans_[b]; }
  std::shared_ptr<WireForm> form(std::size_t b) const;
  double formula_bytes() const { return formula_bytes_; }

  // Called before bucket b is fetched for its plan; with one replica, before it is applied.
  void before(std::size_t b, std::int64_t step);
  // Enqueues the copy to the host, where the plan reads and writes `staging`; null if the values are already there.
  std::shared_ptr<const Event> fetch(std::size_t b, Staging& staging);
  // `after` is called when the plan is done, and returns the traffic outside the plan. `store` then enqueues the copy
  // back to the arena.
  WireCounters after(std::size_t b, Staging& staging);
  void store(std::size_t b, Staging& staging);
  // The record of this replica for the buckets that were done since the last call.
  CodecRecord record() { return feedback_.record(); }

  // Gathers the residuals of sums from the owners of parts on all ranks. Collective; blocking.
  void gather_state();
  void visit_state(StateVisitor& visitor);
  // Returns for instance "ring all-reduce coded as fp16".
  std::string describe(std::string_view algorithm) const;

 private:
  std::shared_ptr<const Plan> make_plan(const AllreduceRequest& request) const;
  void add_form(const ExchangeConfig& config, ArenaRange range, const AllreduceRequest& request);
  bool warms_up(std::size_t b) const { return on() && !feedback_.codes(b); }
  bool lossy() const { return feedback_.lossy(); }
  int ranks() const { return context_.engine.size(); }
  void release_residuals(std::size_t b);
  void drop_residuals(std::size_t b);  // residuals of what this rank sends, and of its sums
  void clear_residual_of_statistics(ArenaRange bucket);
  // Null if bucket b passes through host memory.
  DeviceBucket* on_device(std::size_t b) const {
    return device_forms_.empty() || warms_up(b) ? nullptr : device_forms_[b].get();
  }
  double residual_squares(std::size_t b);

  std::string name_, algorithm_;
  CodecRoute route_;
  StrategyContext context_;
  ErrorFeedback feedback_;
  std::vector<std::shared_ptr<const Plan>> plans_, warmup_plans_;
  std::vector<std::shared_ptr<CodedBucket>> forms_;          // empty without a codec
  std::vector<std::shared_ptr<DeviceBucket>> device_forms_;  // the same objects if the device encodes, else empty
  ExactPart exact_;
  Residual sum_residual_;    // of the sums of the parts that this rank owns
  std::vector<double> tau_;  // by bucket
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
