// SPDX-License-Identifier: Apache-2.0
// Measures latency and bandwidth between all pairs of ranks, in rounds of disjoint pairs: first between the first ranks
// of hosts, so that no two pairs share a host's link, then inside all hosts at the same time. n hosts of at most m
// ranks take n - 1 + m - 1 rounds (one more for each of the two that is odd) instead of k^2 turns.
//
//   latency     half the median of 31 round trips of 8 bytes
//   bandwidth   each direction separately: messages of 64 KiB, doubled until one takes `seconds` or has 64 MiB, each
//               acknowledged; bytes/s = (s2 - s1) / (t2 - t1) of the last two sizes, best of three. This excludes
//               latency, start-up and the burst that a shaped link lets through at once
//
// The calling thread uses the transport directly, without an engine. Every wait has a limit: in round r a rank waits
// for its partner until (2 r + 1) limit_s after its start, and both have finished or given up at (2 r + 2) limit_s, so
// that a rank that was held up by a blocked link is not blamed by its next partner. A link whose partner does not
// answer in time is blocked in that direction.
#pragma once

#include <string>
#include <vector>

#include "comm/links/link_matrix.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

struct AllPairsOptions {
  double seconds = 0.05;  // duration of a message in the bandwidth measurement
  double limit_s = 10;    // limit of a wait
  std::string interface;  // interface of this host, copied to the result
};

struct AllPairs {
  LinkMatrix links;         // on rank 0; elsewhere empty
  std::vector<int> silent;  // ranks that did not report to rank 0 in time: their results are not known
  bool complete = false;    // nothing was given up on this rank; on rank 0: on any rank
};

// Collective: all ranks of the transport call it with equal options. Throws EnvironmentError if the transport does.
// Buffers of abandoned messages are kept until the process ends.
AllPairs measure_all_pairs(Transport& transport, const AllPairsOptions& options);

}  // namespace echelon::inline comm
