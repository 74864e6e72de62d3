// The trace of a run that ends by an error. No meeting comes any more at which spans could be gathered, so every rank
// that is left writes its own into the attempt's folder, and one of them makes trace.json and trace.txt of those that
// are there:
//
//   trace-0003.part    RankTrace::pack, its times on rank 0's clock; removed once it is in the trace
//
// Files are all that is used: the ranks of a run that breaks may not be able to send each other anything.
#pragma once

#include <string>
#include <vector>

#include "report/trace/rank_trace.hpp"

namespace echelon::inline report {

struct BrokenRun {
  std::string steps;               // of the trace: "10..20"
  std::string why;                 // the run ended
  std::vector<std::string> hosts;  // by rank
  std::vector<int> lost;           // ranks that are known to be gone
  double patience_s = 2;           // for parts of the others
};

// Throws EnvironmentError where it cannot be written.
void write_trace_part(const std::string& attempt, const RankTrace& rank);
// Until that part was taken into the trace, at most so long: a rank that leaves first may take the others with it.
void wait_for_join(const std::string& attempt, int rank, double patience_s);
// One thread of one process, blocking for up to patience_s. Returns a line for the log; "" where nothing was recorded,
// and there are no files then. Throws EnvironmentError, DataError.
std::string join_trace_parts(const std::string& attempt, const BrokenRun& run);

}  // namespace echelon::inline report
