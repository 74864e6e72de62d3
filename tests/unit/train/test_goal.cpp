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
  CHECK(goal_met(accuracy, {.loss = nan, .accuracy = 0.9}));
  CHECK_FALSE(goal_met(accuracy, {.loss = 0.1, .accuracy = 0.8999}));
  CHECK_FALSE(goal_met(accuracy, {.loss = 0.1, .accuracy = -1}));
  CHECK_FALSE(goal_met(accuracy, {.loss = 0.1, .accuracy = nan}));
  const GoalConfig loss{.metric = GoalMetric::test_loss, .target = 2};
  CHECK(goal_met(loss, {.loss = 2, .accuracy = -1}));
  CHECK_FALSE(goal_met(loss, {.loss = 2.001, .accuracy = 1}));
  CHECK_FALSE(goal_met(loss, {.loss = nan, .accuracy = 1}));
  const GoalConfig perplexity{.metric = GoalMetric::test_perplexity, .target = 10};
  CHECK(goal_met(perplexity, {.loss = std::log(9.99), .accuracy = -1}));
  CHECK_FALSE(goal_met(perplexity, {.loss = std::log(10.01), .accuracy = -1}));
  const GoalConfig overlap{.metric = GoalMetric::test_mean_iou, .target = 0.5};
  CHECK(goal_met(overlap, {.mean_iou = 0.5}));
  CHECK_FALSE(goal_met(overlap, {.accuracy = 0.9, .mean_iou = 0.49}));
  CHECK_FALSE(goal_met(overlap, {.accuracy = 0.9}));
  CHECK(goal_met({.metric = GoalMetric::test_macro_f1, .target = 0.5}, {.macro_f1 = 0.6}));
  CHECK(goal_met({.metric = GoalMetric::test_auc, .target = 0.9}, {.auc = 0.9}));
  CHECK(goal_met({.metric = GoalMetric::test_r2, .target = 0.5}, {.r2 = 0.6}));
  CHECK_FALSE(goal_met({.metric = GoalMetric::test_r2, .target = 0.5}, {.r2 = -3}));
  CHECK(goal_met({.metric = GoalMetric::test_mae, .target = 0.2}, {.mae = 0.1}));
  CHECK_FALSE(goal_met({.metric = GoalMetric::test_mae, .target = 0.2}, {.mae = 0.3}));
  CHECK_FALSE(goal_met({.metric = GoalMetric::test_mae, .target = 0.2}, {}));
  CHECK(goal_result(overlap, {.mean_iou = 0.25}) == "goal missed: test_mean_iou 0.25, asked for at least 0.5");
  CHECK_FALSE(goal_met({}, {.loss = 0, .accuracy = 1}));
  CHECK(goal_result(accuracy, {.loss = 0.1, .accuracy = 0.912}) ==
        "goal met: test_accuracy 0.912, asked for at least 0.9");
  CHECK(goal_result(loss, {.loss = 2.5, .accuracy = -1}) == "goal missed: test_loss 2.5, asked for at most 2");
  CHECK(goal_result({}, {.loss = 1, .accuracy = 1}).empty());
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
  hook.take({.loss = 1, .accuracy = 0.7});
  CHECK(hook.ends_run());
  hook.epoch_end(untested);  // without an evaluation of its own it keeps the newest one
  CHECK(untested.last);
}

}  // namespace echelon
