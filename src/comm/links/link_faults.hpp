// What is wrong with a measured network, in sentences: blocked and slow links, links that are slower one way, and the
// hosts to which they point.
#pragma once

#include <string>
#include <vector>

#include "comm/links/link_matrix.hpp"

namespace echelon::inline comm {

struct LinkFaults {
  std::vector<std::string> blocked;
  std::vector<std::string> slow;  // slower than the others, or one way
};

// Links between hosts are compared among themselves, and links inside hosts. One slow end of three or four makes half
// of all links slow, so that they are compared with the better quartile of their kind:
//
//   blocked   no answer in time
//   slow      less than half the upper quartile of the bandwidths
//   late      more than 3 times the lower quartile of the latencies, and 20 us above it
//   one way   more than 1.5 times the bandwidth of the other direction
//
// Slow links are named from three ends on: of two there is nothing to compare. A host is named in place of its links
// where more than half of those to (or from) at least two others are blocked or slow. `silent`: ranks that did not
// report (AllPairs).
LinkFaults find_link_faults(const LinkMatrix& links, const std::vector<int>& silent);

}  // namespace echelon::inline comm
