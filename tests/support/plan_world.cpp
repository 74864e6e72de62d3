// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plan_world.hpp"

#include <algorithm>
#include <atomic>
#include <map>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/collective/executor.hpp"
#include "comm/local/local.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

void check_step(const Plan& plan, std::int64_t index, std::int64_t elems, int ranks) {
  const Step step = plan.step(index);
  for (const std::int64_t earlier : step.after) ECHELON_CHECK(earlier >= -1 && earlier < index, "step {}", index);
  ECHELON_CHECK(step.after_all >= 0 && step.after_all <= index, "step {}", index);
  ECHELON_CHECK(!step.range.empty() && step.range.begin >= 0 && step.range.end <= elems, "step {} of {}: [{}, {})",
                index, plan.name(), step.range.begin, step.range.end);
  if (step.kind == StepKind::send || step.kind == StepKind::recv)
    ECHELON_CHECK(step.peer >= 0 && step.peer < ranks, "step {}: peer {}", index, step.peer);
  ECHELON_CHECK_LT(step.slot, plan.slots());
  if (step.slot >= 0) ECHELON_CHECK_LE(step.range.elems(), plan.slot_elems());
  if (step.kind == StepKind::reduce || step.kind == StepKind::copy) ECHELON_CHECK_GE(step.slot, 0);
}

}  // namespace

std::vector<WireCounters> run_plans(const RankPlans& plans, const std::vector<void*>& buffers, DType dtype, int window,
                                    const std::vector<WireForm*>& forms) {
  const int ranks = static_cast<int>(plans.size());
  const std::vector<std::unique_ptr<Transport>> world = make_local_world(ranks);
  // In every other call threads help with every copy and sum, however short.
  static HelperThreads threads(2, -1, [] {});
  static std::atomic<int> calls = 0;
  const bool helped = ++calls % 2 == 0;
  std::vector<Executor> executors;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    executors.emplace_back(window);
    executors.back().start(plans[r], buffers[r], dtype, 1, forms.empty() ? nullptr : forms[r],
                           {helped ? &threads : nullptr, 0});
  }
  // Each round begins at another rank, and a quarter of the ranks lose their turn.
  const HashRng turns(test_seed(), "turns");
  int idle = 0;
  for (std::uint64_t round = 0;; ++round) {
    bool all_done = true, moved = false;
    const std::size_t k = plans.size(), first = turns.at(round).below(k, k);
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t r = (first + (round % 2 == 0 ? i : k - i)) % k;
      const bool loses_turn = round % 16 != 0 && turns.at(round).below(r, 4) == 0;
      if (!executors[r].done() && !loses_turn) moved |= executors[r].advance(*world[r]);
      all_done &= executors[r].done();
      moved |= loses_turn;
    }
    if (all_done) break;
    if (helped && !moved) {
      threads.settle();  // the next round sees what they have done
      moved = ++idle < 3;
    } else {
      idle = 0;
    }
    ECHELON_CHECK(moved, "plan {} over {} ranks with window {} does not go on", plans[0]->name(), ranks, window);
  }
  std::vector<WireCounters> counters;
  for (const auto& transport : world) counters.push_back(transport->counters());
  return counters;
}

void check_rules(const RankPlans& plans, std::int64_t elems) {
  for (const auto& plan : plans)
    for (std::int64_t i = 0; i < plan->steps(); ++i) check_step(*plan, i, elems, static_cast<int>(plans.size()));
  for (const auto& [pair, flow] : flows_of(plans)) {
    ECHELON_CHECK_EQ(flow.sends.size(), flow.receives.size(), "messages from {} to {}", pair.first, pair.second);
    for (std::size_t i = 0; i < flow.sends.size(); ++i)
      ECHELON_CHECK_EQ(step_at(plans, flow.sends[i]).range.elems(), step_at(plans, flow.receives[i]).range.elems(),
                       "message {} from {} to {}", i, pair.first, pair.second);
  }
}

}  // namespace echelon::test
