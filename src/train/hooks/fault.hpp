// SPDX-License-Identifier: Apache-2.0
// Bits of weights that a run flips on purpose (fault/injector.hpp).
#pragma once

#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "fault/injector.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

// Called before the hooks that compare or save weights.
class WeightFaultHook final : public Hook {
 public:
  WeightFaultHook(FaultInjector& faults, Arenas& arenas, Strategy& strategy)
      : faults_(faults), arenas_(arenas), strategy_(strategy) {}
  void step_end(const StepRecord& record) override;

 private:
  FaultInjector& faults_;
  Arenas& arenas_;
  Strategy& strategy_;
};

}  // namespace echelon::inline train
