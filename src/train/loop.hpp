// SPDX-License-Identifier: Apache-2.0
// Epochs of steps with hooks around them, until the run is finished or asked to stop.
//
// The strategy declares when ranks meet (exchange/progress.hpp). At a meeting one small sum over the ranks carries the
// loss and the weight since the last one, whether a loss was not finite, and what signals asked for, so that all ranks
// know the exact loss and stop together. Between meetings a rank steps on by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/run_state.hpp"
#include "comm/group.hpp"
#include "config/schema.hpp"
#include "job/phase.hpp"
#include "train/control/control.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"
#include "train/stepper.hpp"

namespace echelon::inline train {

enum class Ending : std::uint8_t { finished, requeue, interrupted };

struct LoopParts {
  const Config& config;
  const RunPlan& plan;
  int replica;  // the one that this rank trains; plan.replicas on a server
  Stepper& stepper;
  Group& group;
  Control& control;
  RunState& state;
  PhaseBoard& phase;
  std::vector<Hook*> hooks;  // in the order in which they are called
};

// Runs from state.at on; collective. Calls hooks and stepper on the calling thread, whose spans it watches
// (step_clock.hpp). Throws a CommonError (NumericError's code) on all ranks if a loss is not finite.
Ending run_loop(const LoopParts& parts);

}  // namespace echelon::inline train
