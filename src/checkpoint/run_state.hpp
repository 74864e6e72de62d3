// The position and counters of a run, saved with the weights; equal on every rank.
#pragma once

#include <cstdint>

#include "base/state.hpp"

namespace echelon::inline checkpoint {

struct RunState {
  std::int64_t step = 0;           // updates done
  std::int64_t epoch = 0;          // epochs done
  std::int64_t step_in_epoch = 0;  // steps done of the epoch under way
  std::int64_t global_batch = 0;   // samples a step: a resumed run must have the same
  std::int64_t replicas = 1;       // may differ on resume
  std::int64_t steps_per_epoch = 0;
  double epoch_loss = 0;  // sums over the epoch under way, over all replicas
  double epoch_weight = 0;
  double first_loss = 0;  // of the first step of the run; 0: not done yet

  void visit_state(StateVisitor& visitor) {
    visitor.scalar("step", step);
    visitor.scalar("epoch", epoch);
    visitor.scalar("step_in_epoch", step_in_epoch);
    visitor.scalar("global_batch", global_batch);
    visitor.scalar("replicas", replicas);
    visitor.scalar("steps_per_epoch", steps_per_epoch);
    visitor.scalar("epoch_loss", epoch_loss);
    visitor.scalar("epoch_weight", epoch_weight);
    visitor.scalar("first_loss", first_loss);
  }
};

}  // namespace echelon::inline checkpoint
