// SPDX-License-Identifier: Apache-2.0
// Ends a run at the first evaluation of all replicas that reaches goal.target, if goal.stop asks for it. Called on
// every rank, after evaluation and before the hooks that save: all see the same figures at a meeting.
#pragma once

#include "config/goal.hpp"
#include "config/schema.hpp"
#include "report/figures.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class GoalHook final : public Hook {
 public:
  explicit GoalHook(const GoalConfig& goal) : goal_(goal) {}

  // Figures of an evaluation between epochs, of all replicas.
  void take(const TestFigures& figures);
  void epoch_end(EpochRecord& record) override;
  bool ends_run() const override { return goal_.stop && met_; }
  // True if the newest evaluation meets the goal.
  bool met() const { return met_; }

 private:
  const GoalConfig& goal_;
  bool met_ = false;
};

}  // namespace echelon::inline train
