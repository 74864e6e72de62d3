// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/goal.hpp"

#include "config/goal.hpp"

namespace echelon::inline train {

void GoalHook::take(const TestFigures& figures) { met_ = goal_met(goal_, figures); }

void GoalHook::epoch_end(EpochRecord& record) {
  if (record.tested()) take(record.test_figures());
  if (ends_run()) record.last = true;
}

}  // namespace echelon::inline train
