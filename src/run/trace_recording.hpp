// SPDX-License-Identifier: Apache-2.0
// The recorder of run.trace while it is in use: by the thread that makes it, and by the engine.
#pragma once

#include "base/spans.hpp"
#include "comm/engine.hpp"
#include "config/trace_steps.hpp"

namespace echelon::inline run {

class TraceRecording {
 public:
  // `serves`: this rank does no steps of its own. The engine outlives this, which ends on the thread that made it.
  TraceRecording(Engine& engine, const TraceSteps& steps, bool serves)
      : engine_(engine), recorder_(steps.first, steps.last, serves) {
    span_place.recorder = &recorder_;
    engine_.record_spans(&recorder_);
  }
  ~TraceRecording() {
    engine_.record_spans(nullptr);
    if (span_place.recorder == &recorder_) span_place.recorder = nullptr;
  }
  TraceRecording(const TraceRecording&) = delete;

  SpanRecorder& recorder() { return recorder_; }

 private:
  Engine& engine_;
  SpanRecorder recorder_;
};

}  // namespace echelon::inline run
