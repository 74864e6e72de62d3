// SPDX-License-Identifier: Apache-2.0
// Common to `binomial` and `tree`: sums that go up a tree of ranks to its root and down again. 2 (k-1) messages per
// segment.
#pragma once

#include <vector>

#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// The position of a rank in a tree, by indices in its team. The root has index 0.
struct TreePosition {
  int parent = -1;
  std::vector<int> children;   // in the order in which their sums are added; they receive the total in reverse order
  bool one_at_a_time = false;  // a parent receives and sends one message after another
};

// Append this rank's steps for one segment. Up: adds the sums of the children, in order, to this rank's values and
// sends the sum to the parent. Down: receives the total from the parent and sends it to the children, the last one
// first.
void add_up(PlanBuilder& plan, const Team& team, const TreePosition& position, ElemRange segment);
void add_down(PlanBuilder& plan, const Team& team, const TreePosition& position, ElemRange segment);

// The halves of an algorithm that is described by the positions of its ranks and by the number of levels of its tree
// below the root.
template <TreePosition (*kPosition)(int me, int ranks), int (*kHeight)(int ranks)>
inline constexpr Halves kRootedHalves = {.most_owners = one_rank,
                                         .parts = even_parts,
                                         .reduce =
                                             [](PlanBuilder& plan, const Team& team, const Parts& parts) {
                                               for (const ElemRange segment : plan.segments(parts[0]))
                                                 add_up(plan, team, kPosition(team.me, team.size()), segment);
                                             },
                                         .gather =
                                             [](PlanBuilder& plan, const Team& team, const Parts& parts) {
                                               for (const ElemRange segment : plan.segments(parts[0]))
                                                 add_down(plan, team, kPosition(team.me, team.size()), segment);
                                             },
                                         .steps = kHeight,
                                         .messages = messages_to_all};

// The whole all-reduce over all ranks of the request. Segments are pipelined: segment j goes down while segment j +
// height goes up, where height is the number of levels below the root.
std::shared_ptr<const Plan> make_rooted(std::string_view name, const AllreduceRequest& request,
                                        const TreePosition& position, int height);

}  // namespace echelon::inline comm
