// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/rooted.hpp"

#include <algorithm>

namespace echelon::inline comm {

void add_up(PlanBuilder& plan, const Team& team, const TreePosition& position, ElemRange segment) {
  std::vector<PlanBuilder::Aside> came;
  for (const int child : position.children) {
    const std::int64_t before = position.one_at_a_time && !came.empty() ? came.back().received : -1;
    came.push_back(plan.receive_aside(team[child], segment, before));
    if (position.one_at_a_time) plan.add(came.back());
  }
  if (!position.one_at_a_time)
    for (const PlanBuilder::Aside& aside : came) plan.add(aside);
  if (position.parent >= 0) plan.send(team[position.parent], segment);
}

void add_down(PlanBuilder& plan, const Team& team, const TreePosition& position, ElemRange segment) {
  if (position.parent >= 0) plan.receive(team[position.parent], segment);
  std::int64_t last = -1;
  for (auto child = position.children.rbegin(); child != position.children.rend(); ++child) {
    const std::int64_t sent = plan.send(team[*child], segment, last);
    if (position.one_at_a_time) last = sent;
  }
}

std::shared_ptr<const Plan> make_rooted(std::string_view name, const AllreduceRequest& request,
                                        const TreePosition& position, int height) {
  PlanBuilder plan(request.segment_elems);
  const Team team = everyone(request);
  const std::vector<ElemRange> segments = plan.segments({0, request.ranks > 1 ? request.elems : 0});
  const std::size_t behind = static_cast<std::size_t>(height);
  for (std::size_t j = 0; j < segments.size() + behind; ++j) {
    if (j < segments.size()) add_up(plan, team, position, segments[j]);
    if (j >= behind && j - behind < segments.size()) add_down(plan, team, position, segments[j - behind]);
  }
  return plan.finish(std::string(name));
}

}  // namespace echelon::inline comm
