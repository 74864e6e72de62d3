// SPDX-License-Identifier: Apache-2.0
// How replicas proceed through a run. A strategy declares it; the loop, its control messages and its hooks follow it.
// At a meeting all ranks of the run are at the same point: there the loss of all replicas is summed, and weights are
// compared, evaluated and saved. The run ends at a meeting.
#pragma once

#include <cstdint>

namespace echelon::inline exchange {

struct Progress {
  enum class Meets : std::uint8_t {
    every_step,   // after each step
    by_period,    // after every `period`-th step and at the end of each epoch; all replicas count the same steps
    when_called,  // when the end of an epoch over all replicas, a signal, the clock or the end of the run requires it;
                  // each replica counts its own steps, and no replica waits for another between meetings
  };
  Meets meets = Meets::every_step;
  std::int64_t period = 1;
  std::int64_t every_step_until = 0;  // by_period: replicas also meet after each step up to this one
  bool equal_weights = true;          // after drain at a meeting all replicas hold the same weights, bit for bit

  // Whether replicas meet once `step` steps of the run are done. Not for when_called.
  bool meets_after(std::int64_t step, bool ends_epoch) const {
    if (meets != Meets::by_period) return meets == Meets::every_step;
    return ends_epoch || step <= every_step_until || step % period == 0;
  }
};

}  // namespace echelon::inline exchange
