// SPDX-License-Identifier: Apache-2.0
// Describes in sentences the faults of a measured network: blocked and slow links, links that are slower in one
// direction, and the hosts that cause them.
#pragma once

#include <string>
#include <vector>

#include "comm/links/link_matrix.hpp"

namespace echelon::inline comm {

struct LinkFaults {
  std::vector<std::string> blocked;
  std::vector<std::string> slow;  // slower than the others, or slower in one direction
};

// Links between hosts are compared with each other, and so are links inside hosts. One slow endpoint of three or four
// makes half of all links slow, so each link is compared with the better quartile of its kind:
//
//   blocked   the partner did not answer in time
//   slow      less than half the upper quartile of the bandwidths
//   late      more than 3 times the lower quartile of the latencies, and 20 us above it
//   one way   more than 1.5 times the bandwidth of the other direction
//
// Slow links are named only with three or more endpoints, since two offer nothing to compare. A host is named instead
// of its links if more than half of the links to (or from) at least two others are blocked or slow. `silent` are the
// ranks that did not report (AllPairs).
LinkFaults find_link_faults(const LinkMatrix& links, const std::vector<int>& silent);

}  // namespace echelon::inline comm
