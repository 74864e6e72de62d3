// SPDX-License-Identifier: Apache-2.0
// data.balance = "speed": every few steps replicas tell each other how long they compute, and share the next steps by
// it (train/speed_shares.hpp). The samples of a step and their order stay the same, and so does its gradient up to
// rounding. Shares are measured anew after a resume.
//
// On every rank, if ranks meet at every step. Sends 8 bytes per rank at every measurement; a change builds programs
// anew and reads the next batch again.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/run_state.hpp"
#include "comm/group.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"
#include "train/stepper.hpp"

namespace echelon::inline train {

class BalanceHook final : public Hook {
 public:
  // All arguments outlive the hook.
  BalanceHook(const RunPlan& plan, Stepper& stepper, Group& group, const RunState& state);

  void step_end(const StepRecord& record) override;

 private:
  void measure_anew(std::int64_t steps);

  const RunPlan& plan_;
  Stepper& stepper_;
  Group& group_;
  const RunState& state_;
  std::vector<std::int64_t> batches_;  // by replica
  std::int64_t window_ = 0;            // steps of a measurement
  std::int64_t steps_ = 0;             // of this one; below 0: not measured
  double seconds_ = 0;                 // that they computed
};

}  // namespace echelon::inline train
