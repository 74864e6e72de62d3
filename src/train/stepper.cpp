// SPDX-License-Identifier: Apache-2.0
#include "train/stepper.hpp"

#include "train/server_step.hpp"
#include "train/step.hpp"

namespace echelon::inline train {

std::unique_ptr<Stepper> make_stepper(const StepperParts& p) {
  switch (p.place.role()) {
    case Role::server: return std::make_unique<ServerStep>(p.strategy, p.phase);
    case Role::worker: break;
  }
  auto step = std::make_unique<StepRunner>(p);
  if (p.faults && p.faults->has(FaultKind::flip_gradient))
    step->damage_gradients(
        [faults = p.faults, &arenas = p.arenas](ArenaRange range) { faults->flip_gradients(arenas, range); });
  return step;
}

}  // namespace echelon::inline train
