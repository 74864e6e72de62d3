// SPDX-License-Identifier: Apache-2.0
// The times of a step on the compute thread: a stack of parts, of which only the innermost one runs. Entering a part
// leaves the one around it, so that every second is counted once.
//
// The spans of the thread (base/spans.hpp) enter parts: data, forward, backward, waits inside a replica, and meetings.
// Waits for the exchange and updates leave the part around them too, but the strategy counts them (StepOutcome),
// because it knows which of them belong to the step. Spans do not divide a part that is `Held`.
#pragma once

#include <vector>

#include "base/spans.hpp"
#include "report/figures.hpp"

namespace echelon::inline train {

// The part of a step's times that a span belongs to; null: none of its own.
double StepTimes::*part_of(SpanKind kind);

class StepClock final : public SpanWatcher {
 public:
  using Part = double StepTimes::*;  // null: no part of StepTimes, but in its total

  explicit StepClock(const Clock& clock) : clock_(clock), start_s_(clock.now_s()), mark_s_(start_s_) {}

  // Returns the place of this thread's spans while this clock counts. It calls the watcher of `place` inside each part.
  SpanPlace watch(SpanPlace place);
  // Reads the clock, up to which times are counted.
  double read();
  // The times from the start of the step to the last reading. The caller may change the parts.
  StepTimes& times() { return times_; }
  double start_s() const { return start_s_; }
  double end_s() const { return mark_s_; }  // the last reading
  // The last reading begins a step.
  void restart();

  class Held {
   public:
    Held(StepClock& clock, Part part) : clock_(clock) { clock_.enter(part), ++clock_.held_; }
    ~Held() { --clock_.held_, clock_.leave(); }
    Held(const Held&) = delete;

   private:
    StepClock& clock_;
  };

  // SpanWatcher
  void begins(SpanKind kind) override;
  void ends(SpanKind kind, double begin_s) override;

 private:
  void enter(Part part);
  void leave();

  const Clock& clock_;
  SpanWatcher* inner_ = nullptr;
  StepTimes times_;
  double start_s_, mark_s_;
  int held_ = 0;
  std::vector<Part> open_;  // innermost last
};

}  // namespace echelon::inline train
