// SPDX-License-Identifier: Apache-2.0
// The rows of an attempt's metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace echelon::inline report {

struct MetricsRows {
  std::vector<StepFigures> steps;
  std::vector<EpochFigures> epochs;
  std::vector<EpochFigures> tests;      // evaluations between epochs, and those by another job
  std::vector<EpochFigures> snapshots;  // evaluations of the first replica alone
};

// Rows are in the order of the file, followed by evaluations by another job (aside.hpp) of steps that are in it. Skips
// rows of other types and lines that a killed run left incomplete. Throws EnvironmentError if the file does not exist,
// DataError if a field has the wrong type.
MetricsRows read_metrics(const std::string& attempt);

}  // namespace echelon::inline report
