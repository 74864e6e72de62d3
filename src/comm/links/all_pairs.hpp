// Latency and bandwidth between all pairs of ranks, measured in rounds in which pairs are disjoint: first between the
// first ranks of hosts, so that no two pairs share a host's link, then inside every host at once. n hosts of at most m
// ranks take n - 1 + m - 1 rounds (one more each where odd), not k^2 turns.
//
//   latency     half the median of 31 round trips of 8 bytes
//   bandwidth   each direction by itself: messages of 64 KiB, doubled until one takes `seconds` or has 64 MiB, each
//               acknowledged; bytes/s = (s2 - s1) / (t2 - t1) of the last two sizes, best of three, which takes out
//               latency, start-up and what a shaped link lets through at once
//
// The transport is used directly, by the calling thread, without an engine. No wait is unlimited: in round r a rank
// waits for its partner until (2 r + 1) limit_s after its start, and both are through or have given up at (2 r + 2)
// limit_s, so that a rank held up by a blocked link is not blamed by its next partner. A link whose partner does not
// answer in time is blocked in that direction.
#pragma once

#include <string>
#include <vector>

#include "comm/links/link_matrix.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

struct AllPairsOptions {
  double seconds = 0.05;  // a message of the bandwidth
  double limit_s = 10;    // of a wait
  std::string interface;  // of this host, for the result
};

struct AllPairs {
  LinkMatrix links;         // on rank 0; elsewhere empty
  std::vector<int> silent;  // ranks that did not report to rank 0 in time: what they sent is not known
  bool complete = false;    // nothing was given up, on this rank; on rank 0: on any
};

// Collective: all ranks of the transport call it with equal options. Throws EnvironmentError where the transport does.
// Buffers of messages that were given up are kept until the process ends.
AllPairs measure_all_pairs(Transport& transport, const AllPairsOptions& options);

}  // namespace echelon::inline comm
