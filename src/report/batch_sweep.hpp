// Runs of one experiment at several batch sizes: samples/s, and samples until the goal is reached (after Shallue et
// al.: Measuring the effects of data parallelism on neural network training, JMLR 2019), for one or more rules that
// scale the learning rate with the batch.
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
  std::int64_t batch = 0;    // samples a step, as asked for
  std::string rule = {};     // of the learning rate; "": the config's
  std::string attempt = {};  // the newest one of the run; "": it has not finished
  std::string state = {};    // why it has not: "diverged"
};

struct BatchSweepRow {
  BatchSweepCell cell;
  std::optional<RunRecord> run;
  double best = kUnknown;  // the goal's figure, over all evaluations
  Reach reach;             // of the goal
  bool reached() const { return reach.samples == reach.samples; }
};

// The first contiguous range of batch sizes of one rule whose samples to the goal are at most twice the fewest of all
// rows; 0: no row reached it.
struct UsefulRange {
  std::string rule;
  std::int64_t from = 0, to = 0;
};

struct BatchSweep {
  GoalConfig goal;
  std::vector<BatchSweepRow> rows;  // as given: by batch
  std::vector<UsefulRange> useful;  // by rule
};

// `goal`: of a metric. DataError where a record cannot be read.
BatchSweep make_batch_sweep(const std::vector<BatchSweepCell>& cells, const GoalConfig& goal);

std::string batch_sweep_text(const BatchSweep& sweep);      // for the terminal
std::string batch_sweep_markdown(const BatchSweep& sweep);  // the same, with the commands and commits of the runs

}  // namespace echelon::inline report
