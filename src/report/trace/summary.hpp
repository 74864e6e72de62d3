// SPDX-License-Identifier: Apache-2.0
// A text summary of a trace: where the time of every rank went, step by step, and which rank the others wait for.
//
// Each part of the compute thread's time is the time of its spans without the spans nested in them: `exposed` is the
// wait for the exchange, `split` the wait for other ranks of the same replica, `meeting` the wait until all ranks have
// met, and `hooks` the time of the loop's observers, including evaluations, checkpoints and their waits. `other` is the
// rest of the steps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/trace/rank_trace.hpp"

namespace echelon::inline report {

inline constexpr std::array<const char*, 9> kTraceParts = {"data",    "forward",   "backward", "split", "exposed",
                                                           "meeting", "optimizer", "hooks",    "other"};
enum class TracePart : std::uint8_t { data, forward, backward, split, exposed, meeting, optimiser, hooks, other };

using PartTimes = std::array<double, kTraceParts.size()>;  // seconds

// The times of one rank.
struct TraceTimes {
  int rank = 0;
  std::string host, role;
  std::map<std::int64_t, PartTimes> steps;  // by step
  PartTimes sum{};                          // sum over everything that the compute thread did
  double hidden_s = 0;                      // time with a bucket in flight and this rank not waiting for it
  double total_s() const;
  double compute_s() const;  // data, forward, backward, optimiser
};
TraceTimes times_of(const RankTrace& rank);

struct TraceFacts {
  std::string steps;  // "10..20"
  std::uint64_t spans = 0, dropped = 0;
  double error_s = 0;  // largest error of a clock against rank 0's
  int worst_rank = 0;  // rank that has it
  double seconds = 0;
  std::string incomplete = {};            // why the run ended before its spans were gathered; "": it did not
  std::vector<std::string> missing = {};  // ranks without spans in an incomplete trace: "3 on n2"
  void add(const RankTrace& rank);
};

// Returns heading lines and a table of ranks, followed by a table of steps if `with_steps`. Lines are not indented.
std::string trace_text(const std::vector<TraceTimes>& ranks, const TraceFacts& facts, bool with_steps);

}  // namespace echelon::inline report
