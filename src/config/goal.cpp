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
    case GoalMetric::test_mean_iou: return "test_mean_iou";
    case GoalMetric::test_macro_f1: return "test_macro_f1";
    case GoalMetric::test_auc: return "test_auc";
    case GoalMetric::test_mae: return "test_mae";
    case GoalMetric::test_r2: return "test_r2";
  }
  return "";
}

double goal_figure(GoalMetric metric, const TestFigures& figures) {
  double figure = std::nan("");
  switch (metric) {
    case GoalMetric::none: break;
    case GoalMetric::test_accuracy: figure = figures.accuracy; break;
    case GoalMetric::test_loss: figure = figures.loss; break;
    case GoalMetric::test_perplexity: figure = std::exp(figures.loss); break;
    case GoalMetric::test_mean_iou: figure = figures.mean_iou; break;
    case GoalMetric::test_macro_f1: figure = figures.macro_f1; break;
    case GoalMetric::test_auc: figure = figures.auc; break;
    case GoalMetric::test_mae: figure = figures.mae; break;
    case GoalMetric::test_r2: figure = figures.r2; break;
  }
  return std::isfinite(figure) && !(goal_rises(metric) && figure < 0) ? figure : std::nan("");
}

bool goal_rises(GoalMetric metric) {
  return metric != GoalMetric::test_loss && metric != GoalMetric::test_perplexity && metric != GoalMetric::test_mae;
}

bool goal_is_better(GoalMetric metric, double a, double b) { return goal_rises(metric) ? a > b : a < b; }

std::string goal_result(const GoalConfig& goal, const TestFigures& figures) {
  if (goal.metric == GoalMetric::none) return "";
  return fmt::format("{}: {} {:.4g}, asked for at {} {}", goal_met(goal, figures) ? "goal met" : "goal missed",
                     goal_metric_name(goal.metric), goal_figure(goal.metric, figures),
                     goal_rises(goal.metric) ? "least" : "most", goal.target);
}

bool goal_met(const GoalConfig& goal, const TestFigures& figures) {
  const double figure = goal_figure(goal.metric, figures);
  return goal_rises(goal.metric) ? figure >= goal.target : figure <= goal.target;
}

}  // namespace echelon::inline config
