// SPDX-License-Identifier: Apache-2.0
// Positions in their shards of replicas that step at their own pace: pure functions of plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/run_state.hpp"
#include "comm/group.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline train {

// So many steps of a replica further on. O(epochs between).
Position position_after(const SamplePlan& shards, Position from, std::int64_t steps);
// After `step` steps of a replica. O(epochs).
Position position_at(const SamplePlan& shards, std::int64_t step);
// Returns the position of a replica of a run that goes on from `state`: its own, or the run's if it is not known.
Position position_of(const RunState& state, const SamplePlan& shards, int replica);

// Returns the steps that each replica has done; that of this rank has done `steps`. A rank that trains none has a
// number beyond the last replica. Collective over `ranks`; -1 for replicas without a rank there.
std::vector<std::int64_t> steps_by_replica(Group& ranks, int replicas, int replica, std::int64_t steps);

// The weight of what all replicas still have to train, from `state` on, up to a step of an epoch; what some have
// trained beyond it counts as less. O(steps between, x replicas).
double weight_until(const SamplePlan& shards, const RunState& state, std::int64_t epoch, std::int64_t step_in_epoch);

// Returns the samples that are not trained after the replicas of `were` did `steps` steps (one entry per replica), in
// the form that DrawPlan takes: positions in the order of all records, which is that of `records` (Sharding::record),
// for the same samples and seed. Samples that `were` repeats do not count as trained by the replica that fills up a
// step with them, unless they count in its plan (Ragged::wrap). The epoch of the furthest replica has an entry.
// O(samples) memory and time for each epoch that is not over.
std::vector<OpenSamples> open_samples(const SamplePlan& were, const std::vector<std::int64_t>& steps,
                                      const SamplePlan& records);
// Returns the number of samples of such ranges that a run from (epoch, step_in_epoch) on would not train.
std::int64_t samples_before(const std::vector<OpenSamples>& open, const SamplePlan& records, const Position& from);

}  // namespace echelon::inline train
