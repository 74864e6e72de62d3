// SPDX-License-Identifier: Apache-2.0
// Analyses the plans of all ranks of one collective together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

using RankPlans = std::vector<std::shared_ptr<const Plan>>;

struct StepIndex {
  std::size_t rank = 0;
  std::int64_t index = 0;  // index of a step
};

// The messages from one rank to another: sends and receives, each in the plan's order.
struct PlanFlow {
  std::vector<StepIndex> sends, receives;
};
std::map<std::pair<int, int>, PlanFlow> flows_of(const RankPlans& plans);

inline Step step_at(const RankPlans& plans, StepIndex at) { return plans[at.rank]->step(at.index); }

// Returns the number of messages in the longest chain of messages that wait for each other, over all ranks: a message
// waits for those that either of its ends waits for, except for room in a slot. Makes repeated passes over all steps,
// so it is meant for plans of few segments.
int longest_chain(const RankPlans& plans);
// The same for an all-reduce, from the plans of all `ranks`; 0 where these have more than 20,000 steps.
int longest_chain_of(std::string_view algorithm, AllreduceRequest request, int ranks);

}  // namespace echelon::inline comm
