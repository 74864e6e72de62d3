// When a run reached a target: from the evaluations in metrics.jsonl of its attempts, which together have every step
// once. Between two evaluations the figure is interpolated linearly.
#pragma once

#include <string>
#include <vector>

#include "config/goal.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

struct Evaluation {
  double step = 0, samples = 0;  // updates done, samples that all replicas have trained
  double seconds = 0;            // since the start of the run: start-up, training and evaluations
  double test_loss = kUnknown, test_accuracy = kUnknown;
};

// Of all attempts of the run whose newest attempt `run` is, oldest first; snapshots of one replica left out. DataError
// with the path where a row cannot be read; incomplete lines of a killed run are skipped.
std::vector<Evaluation> evaluations_of(const RunRecord& run);

struct Reach {
  double samples = kUnknown, seconds = kUnknown;  // unknown: not reached
};
Reach reach_of(const std::vector<Evaluation>& evaluations, const GoalConfig& goal);

}  // namespace echelon::inline report
