// SPDX-License-Identifier: Apache-2.0
// Decides whether figures of an evaluation reach the goal of a run.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "config/schema.hpp"

namespace echelon::inline config {

// Figures of an evaluation that a goal can name. Not known: not finite, or a share of 1 below 0.
struct TestFigures {
  double loss = std::numeric_limits<double>::quiet_NaN(), accuracy = loss, mean_iou = loss, macro_f1 = loss, auc = loss,
         mae = loss, r2 = loss;
};
// Takes them from a record of figures.
template <class Record>
TestFigures test_figures(const Record& record) {
  return {record.test_loss, record.test_accuracy, record.test_mean_iou, record.test_macro_f1,
          record.test_auc,  record.test_mae,      record.test_r2};
}

// "test_accuracy"; "" without a goal.
std::string goal_metric_name(GoalMetric metric);

// Returns the goal's figure: the loss is in nats, an error in units of the labels, others are in [0, 1]. NaN without a
// goal or if it is not known.
double goal_figure(GoalMetric metric, const TestFigures& figures);
// Whether more of the metric is better: of shares of 1, not of losses, perplexities and errors.
bool goal_rises(GoalMetric metric);
// Whether figure `a` of that metric is better than `b`.
bool goal_is_better(GoalMetric metric, double a, double b);
// "goal met: test_accuracy 0.912, asked for at least 0.9"; "" without a goal.
std::string goal_result(const GoalConfig& goal, const TestFigures& figures);
// True at or above the target for metrics that rise, at or below it for others; false for an unknown figure.
bool goal_met(const GoalConfig& goal, const TestFigures& figures);

}  // namespace echelon::inline config
