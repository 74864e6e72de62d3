// SPDX-License-Identifier: Apache-2.0
// Measures how many bytes per second each host sends and receives while all hosts do so at the same time, as in a
// collective. Links that are measured pair by pair (all_pairs.hpp) are slower under such a load if the hosts share a
// switch's uplink, if their cores cannot carry the traffic, or if connections share a card unevenly.
#pragma once

#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Bytes per second of a host's card in each direction while the first `hosts` hosts transfer.
struct LoadedLinks {
  int hosts = 2;
  double ring_bytes_per_s = 0;     // each host sends to the next one and receives from the one before
  double shuffle_bytes_per_s = 0;  // each host sends to all others and receives from all
};

struct LoadedLinksOptions {
  double seconds = 0.05;     // duration of a transfer at `bytes_per_s`
  double bytes_per_s = 1e9;  // the expected rate; that of leaders[0] counts
  double limit_s = 10;       // limit of each transfer
};

// The results for 2, 4, 8, .. hosts and for all, on leaders[0]; elsewhere empty. Each is the median of three transfers.
// Collective over `leaders`, the first rank of each host, at least two. Uses the transport directly, without an engine.
// Throws EnvironmentError for a transfer that exceeds its limit, and if the transport does; its buffers are then kept
// until the process ends.
std::vector<LoadedLinks> measure_loaded_links(Transport& transport, const std::vector<int>& leaders,
                                              const LoadedLinksOptions& options);

}  // namespace echelon::inline comm
