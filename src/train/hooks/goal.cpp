// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/goal.hpp"

#include "config/goal.hpp"

namespace echelon::inline train {

void GoalHook::take(double test_loss, double test_accuracy) { met_ = goal_met(goal_, test_loss, test_accuracy); }

void GoalHook::epoch_end(EpochRecord& record) {
  if (record.tested()) take(record.test_loss, record.test_accuracy);
  if (ends_run()) record.last = true;
}

}  // namespace echelon::inline train
