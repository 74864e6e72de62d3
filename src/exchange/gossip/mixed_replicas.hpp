// SPDX-License-Identifier: Apache-2.0
// The common part of strategies whose replicas keep weights of their own: every `consensus_every` steps, and at the end
// of an epoch, all replicas meet. Their mean, computed with exchange.algorithm, is the model that is tested, compared
// and saved; each replica continues from its own weights.
//
// Gradients are divided by W / k, the mean weight of a replica's samples in the step: the mean of all replicas then
// moves by the gradient of all samples, even with unequal shares.
//
// Checkpoints hold the mean and, per replica, the distance from it; another number of replicas starts at the mean.
// Memory: one arena.
#pragma once

#include <vector>

#include "exchange/averaging/local_steps.hpp"
#include "exchange/facets.hpp"

namespace echelon::inline exchange {

class MixedReplicas : public LocalSteps, public Rescues {
 public:
  // Throws ConfigError if the messages are to be coded.
  MixedReplicas(const ExchangeConfig& config, const StrategyContext& context, std::int64_t consensus_every);

  Progress progress() const override { return {.meets = Progress::Meets::by_period, .period = consensus_every_}; }
  double divisor(const StepInfo& info) const override { return info.weight > 0 ? info.weight / replicas() : 1; }

  // The remaining replicas continue as after a meeting, each from its own weights. Messages in flight are lost.
  bool rescue(Group& living, const std::vector<int>& lost) override;
  void visit_state(StateVisitor& visitor) override;

 protected:
  // Replaces the mean, which the arenas hold after a meeting, by this replica's own weights.
  void leave_mean();
  // Forms m, the mean of all w_i x_i, in the arenas; this replica continues from m + w_i (x_i - m).
  void meet(double weight = 1);
  // state <- state + factor * m, for state that is saved by its distance from the mean; the arenas hold m.
  virtual void shift_state(double factor) { static_cast<void>(factor); }
  // Number of meetings a step: the mean over the steps so far; before the first step, that of a long run.
  double meetings_per_step() const;

 private:
  std::int64_t consensus_every_;
  Memory deviation_;     // of the arena's size
  bool at_mean_ = true;  // the arena's weights are the mean, not this replica's
  std::int64_t meetings_ = 0;
};

}  // namespace echelon::inline exchange
