// Sums that go up a tree of ranks to its root and down again: what `binomial` and `tree` have in common. 2 (k-1)
// messages a segment.
#pragma once

#include <vector>

#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// Where a rank stands in a tree, in places of its team. The root is place 0.
struct TreePosition {
  int parent = -1;
  std::vector<int> children;   // in the order their sums are added; going down in the reverse order
  bool one_at_a_time = false;  // a parent receives and sends one message after another
};

// Append this rank's steps for one segment. Up: adds the sums of the children, in order, to the own values and sends
// the sum to the parent. Down: receives the total from the parent and sends it to the children, the last one first.
void add_up(PlanBuilder& plan, const Team& team, const TreePosition& place, ElemRange segment);
void add_down(PlanBuilder& plan, const Team& team, const TreePosition& place, ElemRange segment);

// Up and down, over all ranks of the request. Segments are pipelined: segment j goes down while segment j + height goes
// up, height being the number of levels below the root.
std::shared_ptr<const Plan> make_rooted(std::string_view name, const AllreduceRequest& request,
                                        const TreePosition& place, int height);

}  // namespace echelon::inline comm
