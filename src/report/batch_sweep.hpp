// SPDX-License-Identifier: Apache-2.0
// Runs of one experiment at several batch sizes: the rate in samples/s, and the samples needed to reach the goal (after
// Shallue et al.: Measuring the effects of data parallelism on neural network training, JMLR 2019). Covers one or more
// rules that scale the learning rate with the batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "report/record.hpp"
#include "report/to_target.hpp"

namespace echelon::inline report {

struct BatchSweepCell {
  std::int64_t batch = 0;    // samples per step, as requested
  std::string rule = {};     // rule for the learning rate; "": the config's own
  std::string attempt = {};  // newest attempt of the run; "": the run has not finished
  std::string state = {};    // why the run has not finished: "diverged"
};

struct BatchSweepRow {
  BatchSweepCell cell;
  std::optional<RunRecord> run;
  double best = kUnknown;  // best value of the goal's metric over all evaluations
  Reach reach;             // when the goal was reached
  bool reached() const { return reach.samples == reach.samples; }
};

// The first contiguous range of batch sizes, under one rule, that need at most twice as many samples to the goal as the
// best row of the sweep. `from` and `to` are 0 where no row reached the goal.
struct UsefulRange {
  std::string rule;
  std::int64_t from = 0, to = 0;
};

struct BatchSweep {
  GoalConfig goal;
  std::vector<BatchSweepRow> rows;  // as given, in the order of batch sizes
  std::vector<UsefulRange> useful;  // one per rule
};

// `goal` must name a metric. Throws DataError if a record cannot be read.
BatchSweep make_batch_sweep(const std::vector<BatchSweepCell>& cells, const GoalConfig& goal);

std::string batch_sweep_text(const BatchSweep& sweep);      // for the terminal
std::string batch_sweep_markdown(const BatchSweep& sweep);  // the same, with the runs' commands and commits

}  // namespace echelon::inline report
