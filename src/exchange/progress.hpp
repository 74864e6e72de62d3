// How replicas go through a run together: a strategy's declaration, which the loop, its control messages and its hooks
// follow. A meeting is a point at which all ranks of the run stand together: the loss of all replicas is summed there,
// weights are compared, tested and saved there, and there the run ends.
#pragma once

#include <cstdint>

namespace echelon::inline exchange {

struct Progress {
  enum class Meets : std::uint8_t {
    every_step,  // after each step
    by_period,   // after every `period`-th step of the run, and at the end of each epoch; all replicas count alike
    on_call,     // when an epoch over all replicas, a signal, the clock or the end calls for it; each replica counts
                 // steps of its own, and nobody waits for another one between meetings
  };
  Meets meets = Meets::every_step;
  std::int64_t period = 1;
  std::int64_t every_step_until = 0;  // by_period: so many steps of the run meet after each
  bool equal_weights = true;          // at a meeting, once drained, all replicas hold the same weights, bit for bit

  // Whether replicas meet once `step` steps of the run are done; not for on_call.
  bool meets_after(std::int64_t step, bool ends_epoch) const {
    if (meets != Meets::by_period) return meets == Meets::every_step;
    return ends_epoch || step <= every_step_until || step % period == 0;
  }
};

}  // namespace echelon::inline exchange
