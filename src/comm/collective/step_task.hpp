// SPDX-License-Identifier: Apache-2.0
// A copy or a sum of a plan as a task for a helper thread.
#pragma once

#include "base/spans.hpp"
#include "comm/collective/plan.hpp"
#include "comm/collective/plan_memory.hpp"
#include "comm/helper_threads.hpp"

namespace echelon::inline comm {

class StepTask final : public HelperTask {
 public:
  // Called by the thread that drives while no task is running. Both arguments stay valid until this task is done.
  void set(PlanMemory& memory, const Step& step) {
    memory_ = &memory, step_ = &step;
    recorder_ = span_place.recorder;
  }

 private:
  void work() override {
    const PlacedSpans placed({.recorder = recorder_, .lane = SpanLane::helpers});
    if (step_->kind == StepKind::reduce)
      memory_->reduce(*step_);
    else
      memory_->copy(*step_);
  }

  PlanMemory* memory_ = nullptr;
  const Step* step_ = nullptr;
  SpanRecorder* recorder_ = nullptr;
};

}  // namespace echelon::inline comm
