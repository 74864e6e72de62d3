// SPDX-License-Identifier: Apache-2.0
// States that recurrent layers carry from step to step, as rows of the global batch. In stream order row s reads on
// where it was whatever the number of replicas, so a run goes on with its states on any number of them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/state.hpp"
#include "model/program.hpp"

namespace echelon::inline train {

// Rows [row, row + program->batch()) of this rank are in this slot of the program.
struct RecurrentStateRows {
  Program* program = nullptr;
  int slot = 0;
  std::int64_t row = 0;
};

// Shows each state as a slice, rows [first, first + own) of `global`: "carried/<layer>.h" (own, H).
void visit_recurrent_state(const std::vector<RecurrentStateRows>& rows, std::int64_t first, std::int64_t own,
                           std::int64_t global, StateVisitor& visitor);

}  // namespace echelon::inline train
