// SPDX-License-Identifier: Apache-2.0
// The common part of strategies whose replicas take their own optimiser steps and exchange weights at meetings.
// Gradients are counted but not sent; between steps the gradient arena is the buffer of a sum over all replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "exchange/allreduce/bucket_sums.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/buckets.hpp"
#include "exchange/local_scaling.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class LocalSteps : public Strategy {
 public:
  explicit LocalSteps(const StrategyContext& context)
      : context_(context), account_(context.optimiser), pass_(context.arenas), gradient_({0, context.arenas.elems()}) {}

  void begin_step(const StepInfo& info) override {
    gradient_.reset();
    account_.begin_step(info);
  }
  void wait_parameters(ArenaRange) override {}
  void gradient_ready(ArenaRange range) override { gradient_.add(range, account_.info().step); }
  void drain() override { context_.arenas.device().synchronize(); }
  void gather_state() override { sums_->gather_state(); }
  void visit_state(StateVisitor& visitor) override {
    sums_->visit_state(visitor);
    visit_local_scaling(visitor, context_.optimiser.scaling(), position(), context_.part);
  }
  WireCounters wire() const override { return account_.wire(); }

 protected:
  const StrategyContext& context() const { return context_; }
  int replicas() const { return context_.engine.size(); }
  ReplicaPosition position() const { return {context_.engine.rank(), replicas()}; }
  void* weights() const { return context_.arenas.weights_at(0); }
  StepAccount& account() { return account_; }
  const ArenaPass& pass() const { return pass_; }
  BucketSums& sums() { return *sums_; }
  const BucketSums& sums() const { return *sums_; }
  std::int64_t steps() const { return steps_; }  // number of steps in this attempt

  std::vector<ArenaRange> buckets(const ExchangeConfig& config) const {
    return make_buckets(context_.arenas.parameters(), size_of(context_.arenas.dtype()), config.bucket_mb * 1024 * 1024);
  }
  // Must be called once, before anything else. The sums use the channels from `first_channel` on.
  void open_sums(const ExchangeConfig& config, int first_channel) {
    sums_.emplace(config, context_, buckets(config), first_channel);
  }
  // Called at the start of end_step. A check fails if gradients are missing.
  void count_step() {
    ECHELON_CHECK(gradient_.complete(), "gradients missing at the end of step {}", account_.info().step);
    ++steps_;
  }
  // Takes this replica's optimiser step with all its gradients.
  void apply() { apply_all(context_.optimiser, context_.arenas, account_.outcome()); }
  // Called at the end of a meeting: the weights have changed, and the gradient arena no longer holds gradients.
  void end_meeting() {
    context_.arenas.clear_tables();
    context_.arenas.touch();
  }
  StepOutcome take_outcome() {
    StepOutcome outcome = account_.take();
    outcome.codec = sums_->record();
    return outcome;
  }

 private:
  StrategyContext context_;
  StepAccount account_;
  ArenaPass pass_;
  ReadyCount gradient_;  // over the whole arena
  std::optional<BucketSums> sums_;
  std::int64_t steps_ = 0;
};

// Strategy averaging: ", outer momentum 0.9, outer rate 0.7"; empty without an outer step.
std::string outer_text(const AveragingKeys& keys);

}  // namespace echelon::inline exchange
