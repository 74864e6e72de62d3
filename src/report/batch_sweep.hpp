// Runs of one experiment at several batch sizes: samples/s, and samples until a target accuracy is reached (after
// Shallue et al.: Measuring the effects of data parallelism on neural network training, JMLR 2019).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

struct BatchSweepRow {
  std::int64_t batch = 0;  // samples a step
  RunRecord run;
  double best_accuracy = kUnknown;      // over the epochs that were tested
  double samples_to_target = kUnknown;  // steps * batch at the first evaluation that reached it; unknown: not reached
  double seconds_to_target = kUnknown;  // samples_to_target / median samples/s of the run
  bool reached() const { return samples_to_target == samples_to_target; }
};

struct BatchSweep {
  double target = 0;                // test accuracy in [0, 1]
  std::vector<BatchSweepRow> rows;  // by batch
  // The first contiguous range of batch sizes whose samples to target are at most twice the fewest of all rows; 0: no
  // row reached the target.
  std::int64_t useful_from = 0, useful_to = 0;
};

// `run_folders`: one folder for each batch size, as `train` wrote it; all attempts of a run count. DataError where no
// attempt has a summary or a record cannot be read, ConfigError for a folder without attempts.
BatchSweep make_batch_sweep(const std::vector<std::string>& run_folders, double target);

std::string batch_sweep_text(const BatchSweep& sweep);      // for the terminal
std::string batch_sweep_markdown(const BatchSweep& sweep);  // the same, with the commands and commits of the runs

}  // namespace echelon::inline report
