// SPDX-License-Identifier: Apache-2.0
// A binary tree: rank i adds the sums of 2i+1 and 2i+2, which it receives at the same time, to its own and sends the
// result to (i-1)/2; the sum comes down the same tree. For long messages and many ranks: no rank sends or receives more
// than three times the buffer, whatever the number of ranks.
#include <bit>

#include "comm/collective/rooted.hpp"

namespace echelon::inline comm {
namespace {

TreePosition position_in(int me, int ranks) {
  TreePosition position{.parent = me == 0 ? -1 : (me - 1) / 2, .children = {}};
  for (const int child : {2 * me + 1, 2 * me + 2})
    if (child < ranks) position.children.push_back(child);
  return position;
}

int height(int ranks) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1; }

}  // namespace

const Halves tree_halves = kRootedHalves<position_in, height>;

std::shared_ptr<const Plan> make_tree_allreduce(const AllreduceRequest& request) {
  return make_rooted("tree", request, position_in(request.rank, request.ranks), height(request.ranks));
}

Price price_tree(const AllreduceRequest& request) { return price_by_halves("tree", request, 1); }

}  // namespace echelon::inline comm
