// Restores the state of a run from its own checkpoint or that of another run.
#pragma once

#include "checkpoint/run_state.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "optim/optimiser.hpp"
#include "run/resume.hpp"
#include "run/tuning.hpp"
#include "train/draw_queue.hpp"
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
  DrawQueue* draws = nullptr;  // where data.balance = "queue"
};

// Reads the state that `start` selects from its checkpoint and fits the position to the plan (fit_state). Every rank
// calls it, without messages; not for a first step. Throws as load_checkpoint and fit_state do.
void restore(const Decision& start, const RunPlan& plan, const SavedParts& parts);
// Reads recurrent states, after the runner was constructed at the position of the run. No effect for a first step, or
// where only weights are taken up.
void restore_carried(const Decision& start, Stepper& runner);

}  // namespace echelon::inline run
