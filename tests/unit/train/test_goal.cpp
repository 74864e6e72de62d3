// SPDX-License-Identifier: Apache-2.0
// Goals of a run: when they count as met, and which ones end a run.
#include <catch2/catch.hpp>
#include <cmath>

#include "config/goal.hpp"
#include "train/hooks/goal.hpp"

namespace echelon {

TEST_CASE("an accuracy is to be reached, a loss or perplexity to be come down to", "[train][goal]") {
  const double nan = std::nan("");
  const GoalConfig accuracy{.metric = GoalMetric::test_accuracy, .target = 0.9};
  CHECK(goal_met(accuracy, nan, 0.9));
  CHECK_FALSE(goal_met(accuracy, 0.1, 0.8999));
  CHECK_FALSE(goal_met(accuracy, 0.1, -1));
  CHECK_FALSE(goal_met(accuracy, 0.1, nan));
  const GoalConfig loss{.metric = GoalMetric::test_loss, .target = 2};
  CHECK(goal_met(loss, 2, -1));
  CHECK_FALSE(goal_met(loss, 2.001, 1));
  CHECK_FALSE(goal_met(loss, nan, 1));
  const GoalConfig perplexity{.metric = GoalMetric::test_perplexity, .target = 10};
  CHECK(goal_met(perplexity, std::log(9.99), -1));
  CHECK_FALSE(goal_met(perplexity, std::log(10.01), -1));
  CHECK_FALSE(goal_met({}, 0, 1));
  CHECK(goal_result(accuracy, 0.1, 0.912) == "goal met: test_accuracy 0.912, asked for at least 0.9");
  CHECK(goal_result(loss, 2.5, -1) == "goal missed: test_loss 2.5, asked for at most 2");
  CHECK(goal_result({}, 1, 1).empty());
}

TEST_CASE("a run ends at its goal where it is told to, and its last epoch is the one of the evaluation",
          "[train][goal]") {
  GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.5};
  GoalHook hook(goal);
  EpochRecord record{.epoch = 1, .test_loss = 1, .test_accuracy = 0.6};
  hook.epoch_end(record);
  CHECK(hook.met());
  CHECK_FALSE(hook.ends_run());
  CHECK_FALSE(record.last);
  goal.stop = true;
  record.test_accuracy = 0.4;
  hook.epoch_end(record);
  CHECK_FALSE(hook.ends_run());
  CHECK_FALSE(record.last);
  EpochRecord untested{.epoch = 2};
  hook.take(1, 0.7);
  CHECK(hook.ends_run());
  hook.epoch_end(untested);  // without an evaluation of its own it keeps the newest one
  CHECK(untested.last);
}

}  // namespace echelon
