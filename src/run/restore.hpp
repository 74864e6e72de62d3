// Restores the state of a run from its own checkpoint or that of another run.
#pragma once

#include "checkpoint/run_state.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "optim/optimiser.hpp"
#include "run/resume.hpp"
#include "run/tuning.hpp"
#include "train/batch_draws.hpp"
#include "train/run_plan.hpp"
#include "train/step.hpp"

namespace echelon::inline run {

// The stateful objects of a run that exist on all ranks, in the order of checkpoints.
struct SavedParts {
  RunState& state;
  Tuning& tuning;
  Arenas& arenas;
  Optimiser& optimiser;
  Strategy& strategy;
};

// Reads the state that `start` selects from its checkpoint and fits the position to the plan (fit_state), of a rank
// that trains `replica`. Every rank calls it, without messages; not for a first step. Throws as load_checkpoint and
// fit_state do.
void restore(const Decision& start, const Config& config, const RunPlan& plan, int replica, const SavedParts& parts);
// Whence a worker gets its batches, if not from its shard: data.balance = "queue", or samples that another number of
// replicas has left open. Collective over the workers of which it is one, by replica; `channel` as DrawQueue's.
std::unique_ptr<BatchDraws> make_draws(const Config& config, const RunPlan& plan, const RunState& state,
                                       Engine& workers, int channel);
// Reads recurrent states, after the runner was constructed at the position of the run. No effect for a first step, or
// where only weights are taken up.
void restore_carried(const Decision& start, Stepper& runner);

}  // namespace echelon::inline run
