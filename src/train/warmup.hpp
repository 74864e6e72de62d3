// SPDX-License-Identifier: Apache-2.0
// Warm-up with few replicas, of strategies whose replicas step at their own pace: at the beginning of the run, or of
// each epoch, only the first replicas train (SamplePlan::takes); the others stand at a meeting and join with the
// weights that all get there. Rank 0 calls that meeting once the weights of the warm-up's steps add up, whoever took
// them.
#pragma once

#include <cstdint>

#include "checkpoint/run_state.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline train {

// The warm-ups of a run, and where a replica is among them; equal on all ranks except for `replica`.
class Warmup {
 public:
  // Begins at this state. `plan` outlives it.
  Warmup(const RunPlan& plan, int replica, const RunState& start);

  // The total weight since the start at which the next warm-up is over; 0: there is none. O(steps of an epoch).
  double next_weight() const;
  // It is over: all ranks stand at the meeting that was called for it.
  void over();
  // True if this replica has samples at this position; a server has none, and takes part in every step.
  bool takes(const Position& at) const;
  // If it has none: whether it must wait for the end of the warm-up, and the number of steps until it joins.
  bool waits(const Position& at) const { return at.epoch >= epoch_; }
  std::int64_t steps_to_join(const Position& at) const;

 private:
  // Step of epoch_ at which its warm-up ends: no later than the run.
  std::int64_t end() const;

  const RunPlan& plan_;
  int replica_;
  std::int64_t epoch_ = 0;          // the first whose warm-up is not over
  double weight_before_epoch_ = 0;  // of this attempt; less than 0 where some have trained beyond it before
};

}  // namespace echelon::inline train
