// SPDX-License-Identifier: Apache-2.0
// Fits a restored position to the run that goes on, for another number of replicas or another strategy.
//
// Replicas that step at their own pace (asynchronous, stale_synchronous) have positions of their own. On the same
// number of replicas, each goes on at its own position. On another number, the samples that nobody has trained are
// dealt anew from the order of all records, so that each sample is still trained once per epoch. If batches cannot be
// dealt by record (deals_by_record), or if the strategy's replicas step together, all go on at the position of the
// furthest one; the samples that slower ones had not reached are left out, and a warning gives their number.
#pragma once

#include "checkpoint/run_state.hpp"
#include "config/schema.hpp"
#include "run/resume.hpp"

namespace echelon::inline run {

// True if replicas at their own pace can take batches of one size from one order of all records (data/draw_plan.hpp).
bool deals_by_record(const Config& config, const RunPlan& plan);
// Returns the plan that has this order of all records.
SamplePlan records_of(const Config& config, const RunPlan& plan);

// Fits a restored state to this run and this rank, which trains `replica`. If another number of replicas has shortened
// the epoch, and the position is beyond its end, the next epoch begins. Throws ConfigError for another global batch,
// and DataError if the state is not that of the checkpoint's step. Logs other data, another number of replicas and
// another length of an epoch. Sends no message; O(samples) for each epoch that is dealt anew.
void fit_state(RunState& state, const Config& config, const RunPlan& plan, const Decision& start, int replica);

}  // namespace echelon::inline run
