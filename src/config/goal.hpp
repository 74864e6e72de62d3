// SPDX-License-Identifier: Apache-2.0
// Decides whether figures of an evaluation reach the goal of a run.
#pragma once

#include <cmath>
#include <string>

#include "config/schema.hpp"

namespace echelon::inline config {

// "test_accuracy"; "" without a goal.
std::string goal_metric_name(GoalMetric metric);

// Returns the goal's figure from a loss in nats and an accuracy in [0, 1]. NaN without a goal or if the figure is not
// known (an accuracy below 0, a loss that is not finite).
double goal_figure(GoalMetric metric, double test_loss, double test_accuracy);
// Whether figure `a` of that metric is better than `b`: higher for accuracies, lower for losses and perplexities.
bool goal_is_better(GoalMetric metric, double a, double b);
// "goal met: test_accuracy 0.912, asked for at least 0.9"; "" without a goal.
std::string goal_result(const GoalConfig& goal, double test_loss, double test_accuracy);
// True at or above the target for accuracies, at or below it for losses and perplexities; false for an unknown figure.
bool goal_met(const GoalConfig& goal, double test_loss, double test_accuracy);

}  // namespace echelon::inline config
