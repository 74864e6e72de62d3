// The rows of an attempt's metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace echelon::inline report {

struct MetricsRows {
  std::vector<StepFigures> steps;
  std::vector<EpochFigures> epochs;
  std::vector<EpochFigures> tests;      // evaluations of all replicas between epochs, and those of another job
  std::vector<EpochFigures> snapshots;  // of the first replica alone
};

// In the order of the file; then evaluations by another job (aside.hpp) of the steps that are in it. Lines that a
// killed run left incomplete and rows of other types are skipped. EnvironmentError where there is no such file,
// DataError for a field of another type.
MetricsRows read_metrics(const std::string& attempt);

}  // namespace echelon::inline report
