// SPDX-License-Identifier: Apache-2.0
#include "config/goal.hpp"

#include <fmt/format.h>

namespace echelon::inline config {

std::string goal_metric_name(GoalMetric metric) {
  switch (metric) {
    case GoalMetric::none: return "";
    case GoalMetric::test_accuracy: return "test_accuracy";
    case GoalMetric::test_loss: return "test_loss";
    case GoalMetric::test_perplexity: return "test_perplexity";
  }
  return "";
}

double goal_figure(GoalMetric metric, double test_loss, double test_accuracy) {
  double figure = std::nan("");
  if (metric == GoalMetric::test_accuracy && test_accuracy >= 0) figure = test_accuracy;
  if (metric == GoalMetric::test_loss) figure = test_loss;
  if (metric == GoalMetric::test_perplexity) figure = std::exp(test_loss);
  return std::isfinite(figure) ? figure : std::nan("");
}

bool goal_is_better(GoalMetric metric, double a, double b) {
  return metric == GoalMetric::test_accuracy ? a > b : a < b;
}

std::string goal_result(const GoalConfig& goal, double test_loss, double test_accuracy) {
  if (goal.metric == GoalMetric::none) return "";
  return fmt::format("{}: {} {:.4g}, asked for at {} {}",
                     goal_met(goal, test_loss, test_accuracy) ? "goal met" : "goal missed",
                     goal_metric_name(goal.metric), goal_figure(goal.metric, test_loss, test_accuracy),
                     goal.metric == GoalMetric::test_accuracy ? "least" : "most", goal.target);
}

bool goal_met(const GoalConfig& goal, double test_loss, double test_accuracy) {
  const double figure = goal_figure(goal.metric, test_loss, test_accuracy);
  return goal.metric == GoalMetric::test_accuracy ? figure >= goal.target : figure <= goal.target;
}

}  // namespace echelon::inline config
