// Runs of one experiment at several batch sizes, side by side: what a larger batch wins in speed and loses in samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

struct BatchSweepRow {
  std::int64_t batch = 0;
  RunRecord run;
  double best_accuracy = kUnknown;      // over the epochs that were tested
  double samples_to_target = kUnknown;  // at the first tested epoch that reached it; unknown: not reached
  double seconds_to_target = kUnknown;  // at the run's median rate
  bool reached() const { return samples_to_target == samples_to_target; }
};

struct BatchSweep {
  double target = 0;                // test accuracy in [0, 1]
  std::vector<BatchSweepRow> rows;  // by batch
  // Of the rows: batches from the smallest up whose samples to target stay within twice the fewest; 0: none reached it.
  std::int64_t useful_from = 0, useful_to = 0;
};

// One run's folder a batch, as train left it. DataError where one holds no summary.
BatchSweep make_batch_sweep(const std::vector<std::string>& run_folders, double target);

std::string batch_sweep_text(const BatchSweep& sweep);      // for the terminal
std::string batch_sweep_markdown(const BatchSweep& sweep);  // the same as a file

}  // namespace echelon::inline report
