// Damage on purpose, for tests of what notices it: one bit of one rank's weights is flipped after one step.
//
// Asked for by the environment alone, on every rank alike, and logged:
//   ECHELON_FAULT=flip:<rank>:<step>:<element>:<bit>     element of the weights' arena, bit from the lowest
#pragma once

#include <cstdint>
#include <memory>

#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class FaultHook final : public Hook {
 public:
  struct Flip {
    int rank = 0;
    std::int64_t step = 0, element = 0;
    int bit = 0;
  };
  FaultHook(const Flip& flip, Arenas& arenas, Strategy& strategy) : flip_(flip), arenas_(arenas), strategy_(strategy) {}
  void step_end(const StepRecord& record) override;

 private:
  Flip flip_;
  Arenas& arenas_;
  Strategy& strategy_;
};

// Null where no fault is asked for on this rank; ConfigError where it cannot be read or has no such element.
std::unique_ptr<Hook> make_fault_hook(int rank, Arenas& arenas, Strategy& strategy);

}  // namespace echelon::inline train
