// SPDX-License-Identifier: Apache-2.0
// The part of one rank in a rate of all replicas: when each of its steps ended, with how many samples, and the time
// between steps. Seconds count from the barrier at which the loop of an attempt begins, on the rank's own
// monotonic clock, so that the ranks' records lie on one axis, up to the time in which a barrier lets its ranks go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class RateRecord {
 public:
  // After each step, and each meeting that this rank has waited for.
  void add(const StepRecord& record);

  // The end of step `steps` of this rank, or of its first where it has done no more than that; infinity where it has
  // done no more than one.
  double warm_s(std::int64_t steps) const;
  // The end of its last step, without the hooks that follow; 0 where it has done none.
  double last_s() const;

  // Between two instants. Of a step that lies across one of them, the share of its time that is between them. What
  // follows this rank's last record is not counted.
  struct Share {
    double samples = 0, tokens = 0;
    double evaluation_s = 0, checkpoint_s = 0;
  };
  Share between(double from_s, double to_s) const;

 private:
  struct Entry {
    double begin_s = 0, end_s = 0;  // of the step, or of the wait
    double samples = 0, tokens = 0;
    double evaluation_s = 0, checkpoint_s = 0;  // after it
  };
  std::vector<Entry> entries_;
  std::vector<std::size_t> steps_;  // entries that are steps of this rank
  double now_s_ = 0;
};

}  // namespace echelon::inline train
