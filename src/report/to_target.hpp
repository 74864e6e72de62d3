// SPDX-License-Identifier: Apache-2.0
// Computes when a run reached a target, from the evaluations in metrics.jsonl of its attempts, which together contain
// every step once. Between two evaluations the figure is interpolated linearly.
#pragma once

#include <string>
#include <vector>

#include "config/goal.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

struct Evaluation {
  double step = 0, samples = 0;  // updates done; samples that all replicas have trained
  double seconds = 0;            // since the start of the run, with start-up, training and evaluations
  double test_loss = kUnknown, test_accuracy = kUnknown, test_mean_iou = kUnknown, test_macro_f1 = kUnknown;
  double test_auc = kUnknown, test_mae = kUnknown, test_r2 = kUnknown;
};

// Returns the evaluations of all attempts, oldest first, of the run whose newest attempt is `run`; leaves out snapshots
// of one replica. Throws DataError, with the path, if a row cannot be read; skips incomplete lines of a killed run.
std::vector<Evaluation> evaluations_of(const RunRecord& run);

struct Reach {
  double samples = kUnknown, seconds = kUnknown;  // unknown: not reached
};
Reach reach_of(const std::vector<Evaluation>& evaluations, const GoalConfig& goal);

}  // namespace echelon::inline report
