// A restored position in the run that goes on: other numbers of replicas, other strategies.
//
// Replicas that step at their own pace (asynchronous, stale_synchronous) have positions of their own. On as many
// replicas each goes on at its own. On another number of them, what nobody has trained is dealt anew from the order of
// all records, so that each sample is still trained once an epoch. Where batches cannot be dealt by record
// (deals_by_record), and under strategies whose replicas step together, all go on at the position of the furthest one,
// and the samples that slower ones had not reached are left out, in a warning with their number.
#pragma once

#include "checkpoint/run_state.hpp"
#include "config/schema.hpp"
#include "run/resume.hpp"

namespace echelon::inline run {

// Whether batches of one size can be taken from one order of all records (data/draw_plan.hpp), by replicas at their own
// pace.
bool deals_by_record(const Config& config, const RunPlan& plan);
// The plan whose order of all records that is.
SamplePlan records_of(const Config& config, const RunPlan& plan);

// Fits a restored state to this run and this rank, which trains `replica`: where the number of replicas has changed the
// length of an epoch and the position is beyond it, the next epoch begins. ConfigError for another global batch;
// DataError where the state is not that of the checkpoint's step. Logs other data, another number of replicas and
// another length of an epoch. Without messages; O(samples) for each epoch that is dealt anew.
void fit_state(RunState& state, const Config& config, const RunPlan& plan, const Decision& start, int replica);

}  // namespace echelon::inline run
