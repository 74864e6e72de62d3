// Sums that climb a tree of ranks and come down it again: what `binomial` and `tree` have in common.
#pragma once

#include <vector>

#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// Where a rank stands in a tree, in places of its team. The root is place 0.
struct TreePosition {
  int parent = -1;
  std::vector<int> children;   // in the order their sums are added; going down in the reverse order
  bool one_at_a_time = false;  // a parent takes and gives one message after another
};

// One segment: a place adds its children's sums to its own and sends them up.
void add_up(PlanBuilder& plan, const Team& team, const TreePosition& place, ElemRange segment);
void add_down(PlanBuilder& plan, const Team& team, const TreePosition& place, ElemRange segment);

// Both ways, over all ranks. Segments go down while later ones climb; the first follows `height` behind.
std::shared_ptr<const Plan> make_rooted(std::string_view name, const AllreduceRequest& request,
                                        const TreePosition& place, int height);

}  // namespace echelon::inline comm
