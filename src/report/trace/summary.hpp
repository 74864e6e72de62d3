// What a trace comes to, as text: where the time of every rank went, step by step, and which rank the others wait for.
//
// Parts of the compute thread's time are what its spans do not hand on to spans inside them: `exposed` is the wait for
// the exchange, `split` that for other ranks of the same replica, `meeting` that until all ranks stand together,
// `hooks` what observers of the loop take, evaluation and checkpoints included, with their waits. `other` is the rest
// of steps.
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

// Of one rank.
struct TraceTimes {
  int rank = 0;
  std::string host, role;
  std::map<std::int64_t, PartTimes> steps;  // by step
  PartTimes sum{};                          // of all that the compute thread did
  double hidden_s = 0;                      // some bucket under way, and nobody here waiting for it
  double total_s() const;
  double compute_s() const;  // data, forward, backward, optimiser
};
TraceTimes times_of(const RankTrace& rank);

struct TraceFacts {
  std::string steps;  // "10..20"
  std::uint64_t spans = 0, dropped = 0;
  double error_s = 0;  // of clocks against rank 0's, the largest
  int worst_rank = 0;  // whose it is
  double seconds = 0;
  std::string incomplete = {};            // why the run ended before its spans were gathered; "": it did not
  std::vector<std::string> missing = {};  // of such a trace, ranks without spans: "3 on n2"
  void add(const RankTrace& rank);
};

// A heading of some lines and a table of ranks; behind it, `with_steps`, a table of steps. Lines without indentation.
std::string trace_text(const std::vector<TraceTimes>& ranks, const TraceFacts& facts, bool with_steps);

}  // namespace echelon::inline report
