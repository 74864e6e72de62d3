// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: the memory of this rank's part of the model, and what updates it.
#pragma once

#include <memory>
#include <optional>

#include "checkpoint/run_state.hpp"
#include "device/arenas.hpp"
#include "exchange/batch_norm_sum.hpp"
#include "exchange/part_norms.hpp"
#include "exchange/strategy.hpp"
#include "optim/optimiser.hpp"
#include "run/opened.hpp"

namespace echelon::inline run {

struct Built {
  // Sends no message. Weights are drawn from the seed, and the state is that of the first step.
  Built(const AttemptContext& context, Placed& placed, const Agreed& agreed, Opened& opened);

  Arenas arenas;
  std::optional<PartNorms> part_norms;  // if the model is split
  Optimiser optimiser;
  std::unique_ptr<Strategy> strategy;
  BatchNormSum batch_norm_sum;
  RunState state;

  bool asynchronous() const { return strategy->progress().meets == Progress::Meets::when_called; }
};

// The phases up to here, which later ones refer to.
struct Phases {
  AttemptContext& context;
  Placed& placed;
  const Agreed& agreed;
  Opened& opened;
  Built& built;
};

}  // namespace echelon::inline run
