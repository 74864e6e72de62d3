// Whether figures of an evaluation reach the goal of a run.
#pragma once

#include <cmath>
#include <string>

#include "config/schema.hpp"

namespace echelon::inline config {

// "test_accuracy"; "" where there is no goal.
std::string goal_metric_name(GoalMetric metric);

// The goal's figure, of a loss in nats and an accuracy in [0, 1]; NaN where there is no goal or the figure is not
// known (an accuracy below 0, a loss that is not finite).
double goal_figure(GoalMetric metric, double test_loss, double test_accuracy);
// Whether figure `a` of that metric is better than `b`: greater for accuracies, less for losses and perplexities.
bool goal_is_better(GoalMetric metric, double a, double b);
// "goal met: test_accuracy 0.912, asked for at least 0.9"; "" where there is no goal.
std::string goal_result(const GoalConfig& goal, double test_loss, double test_accuracy);
// At least the target for accuracies, at most for losses and perplexities; false where the figure is not known.
bool goal_met(const GoalConfig& goal, double test_loss, double test_accuracy);

}  // namespace echelon::inline config
