// What a run goes on with, read from its checkpoint or another run's.
#pragma once

#include "checkpoint/run_state.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "optim/optimiser.hpp"
#include "run/resume.hpp"
#include "run/tuning.hpp"
#include "train/run_plan.hpp"
#include "train/step.hpp"

namespace echelon::inline run {

// What all ranks hold of a run, in the order of checkpoints.
struct SavedParts {
  RunState& state;
  Tuning& tuning;
  Arenas& arenas;
  Optimiser& optimiser;
  Strategy& strategy;
};

// Reads what `start` takes up of its checkpoint and fits the position to the plan (fit_state). Every rank calls it; not
// for a first step. Throws what load_checkpoint and fit_state throw.
void restore(const Decision& start, const RunPlan& plan, const SavedParts& parts);
// Recurrent states, once the runner stands where the run does. Nothing for a first step.
void restore_carried(const Decision& start, Stepper& runner);

}  // namespace echelon::inline run
