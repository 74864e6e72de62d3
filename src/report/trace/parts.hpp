// SPDX-License-Identifier: Apache-2.0
// The trace of a run that ends with an error. There is no further meeting at which spans could be gathered, so every
// surviving rank writes its own part into the attempt's folder, and one of them makes trace.json and trace.txt from the
// parts that are there:
//
//   trace-0003.part    RankTrace::pack, with times on rank 0's clock; removed once it is in the trace
//
// Only files are used, because the ranks of a failing run may be unable to exchange messages.
#pragma once

#include <string>
#include <vector>

#include "report/trace/rank_trace.hpp"

namespace echelon::inline report {

struct BrokenRun {
  std::string steps;               // steps of the trace: "10..20"
  std::string why;                 // why the run ended
  std::vector<std::string> hosts;  // one per rank
  std::vector<int> lost;           // ranks that are known to be gone
  double patience_s = 2;           // how long to wait for the parts of other ranks
};

// Throws EnvironmentError if the part cannot be written.
void write_trace_part(const std::string& attempt, const RankTrace& rank);
// Waits, for at most `patience_s`, until the rank's part has been taken into the trace. A rank that exits earlier may
// take the others down with it.
void wait_for_join(const std::string& attempt, int rank, double patience_s);
// One thread of one process calls it; it blocks for up to run.patience_s. Returns a line for the log, or "" if nothing
// was recorded; then it writes no files. Throws EnvironmentError, DataError.
std::string join_trace_parts(const std::string& attempt, const BrokenRun& run);

}  // namespace echelon::inline report
