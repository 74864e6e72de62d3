// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/plan_flows.hpp"

#include <algorithm>

namespace echelon::inline comm {

std::map<std::pair<int, int>, PlanFlow> flows_of(const RankPlans& plans) {
  std::map<std::pair<int, int>, PlanFlow> all;
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::int64_t i = 0; i < plans[r]->steps(); ++i) {
      const Step step = plans[r]->step(i);
      const int me = static_cast<int>(r);
      if (step.kind == StepKind::send) all[{me, step.peer}].sends.push_back({r, i});
      if (step.kind == StepKind::recv) all[{step.peer, me}].receives.push_back({r, i});
    }
  return all;
}

int longest_chain(const RankPlans& plans) {
  std::vector<std::vector<int>> finish;
  for (const auto& plan : plans) finish.emplace_back(static_cast<std::size_t>(plan->steps()), 0);
  const auto at = [&](StepIndex where) -> int& { return finish[where.rank][static_cast<std::size_t>(where.index)]; };
  // Messages before this step can start. A receive that waits for its slot waits for memory, not for a message.
  const auto start = [&](StepIndex where) {
    const Step step = step_at(plans, where);
    int links = 0;
    for (const std::int64_t earlier : step.after) {
      if (earlier < 0) continue;
      const Step before = plans[where.rank]->step(earlier);
      const bool slot =
          step.kind == StepKind::recv && step.slot >= 0 && before.kind == StepKind::reduce && before.slot == step.slot;
      if (!slot) links = std::max(links, at({where.rank, earlier}));
    }
    for (std::int64_t earlier = 0; earlier < step.after_all; ++earlier)
      links = std::max(links, at({where.rank, earlier}));
    return links;
  };
  std::map<std::pair<std::size_t, std::int64_t>, StepIndex> other_end;
  for (const auto& [pair, flow] : flows_of(plans))
    for (std::size_t i = 0; i < flow.sends.size(); ++i) {
      other_end[{flow.receives[i].rank, flow.receives[i].index}] = flow.sends[i];
      other_end[{flow.sends[i].rank, flow.sends[i].index}] = flow.receives[i];
    }
  // Repeated until nothing changes: a message is one level deeper than the messages that either of its ends waits for.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t r = 0; r < plans.size(); ++r)
      for (std::int64_t i = 0; i < plans[r]->steps(); ++i) {
        int links = start({r, i});
        const auto other = other_end.find({r, i});
        if (other != other_end.end()) links = std::max(links, start(other->second)) + 1;
        changed |= links > at({r, i});
        at({r, i}) = std::max(at({r, i}), links);
      }
  }
  int longest = 0;
  for (const auto& of_rank : finish)
    for (const int links : of_rank) longest = std::max(longest, links);
  return longest;
}

int longest_chain_of(std::string_view algorithm, AllreduceRequest request, int ranks) {
  constexpr std::int64_t kMostSteps = 20000;
  RankPlans plans;
  std::int64_t steps = 0;
  for (request.rank = 0; request.rank < ranks; ++request.rank) {
    plans.push_back(make_allreduce(algorithm, request));
    steps += plans.back()->steps();
  }
  return steps <= kMostSteps ? longest_chain(plans) : 0;
}

}  // namespace echelon::inline comm
