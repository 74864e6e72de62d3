// SPDX-License-Identifier: Apache-2.0
#include "train/device_times.hpp"

#include <exception>

#include "train/step_clock.hpp"

namespace echelon::inline train {

void DeviceTimes::begin_step() {
  const SpanRecorder* const spans = open_spans();
  if (spans != nullptr && !anchor_s_) anchor();
  at_ = (at_ + 1) % kSteps;
  steps_[at_].parts.clear();
  steps_[at_].waits = false;
  steps_[at_].traced = spans != nullptr ? spans->step() : 0;
  within_.clear();
  open_ = true;
  timer_->mark(number_of(at_, 0));
}

void DeviceTimes::end_step() {
  mark();
  steps_[at_].waits = true;
  open_ = false;
}

void DeviceTimes::mark() {
  Step& step = steps_[at_];
  step.parts.push_back(within_.empty() ? SpanKind::step : within_.back());
  timer_->mark(number_of(at_, step.parts.size()));
}

// Between its two sides nothing else is on the device's stream: the reading is at most half of the time between them
// away from their middle.
void DeviceTimes::anchor() {
  timer_->mark(kAnchor);
  timer_->wait(kAnchor);  // for what was enqueued before
  const double before_s = now_s();
  timer_->mark(kAnchor);
  timer_->wait(kAnchor);
  anchor_s_ = (before_s + now_s()) / 2;
}

void DeviceTimes::trace(std::size_t at) const {
  SpanRecorder* const spans = span_place.recorder;
  const Step& step = steps_[at];
  if (step.traced == 0 || spans == nullptr) return;
  const auto time_of = [&](std::size_t reading) {
    return *anchor_s_ + timer_->seconds(kAnchor, number_of(at, reading));
  };
  for (std::size_t i = 0; i < step.parts.size(); ++i)
    if (step.parts[i] != SpanKind::step) spans->add_device(time_of(i), time_of(i + 1), step.parts[i], step.traced);
}

void DeviceTimes::end_run() {
  if (!anchor_s_) return;
  for (std::size_t at = 0; at < kSteps; ++at)
    if (steps_[at].waits && steps_[at].traced != 0) timer_->wait(number_of(at, steps_[at].parts.size()));
  (void)take();
}

void DeviceTimes::begins(SpanKind kind) {
  if (!open_ || !part_of(kind)) return;
  mark();
  within_.push_back(kind);
}

// Called by destructors. A device that has failed gives no times; its next operation throws the reason.
void DeviceTimes::ends(SpanKind kind, double) {
  if (!open_ || !part_of(kind) || within_.empty()) return;
  try {
    mark();
  } catch (const std::exception&) {
    open_ = false;
  }
  within_.pop_back();
}

std::optional<StepTimes> DeviceTimes::take() {
  std::optional<StepTimes> newest;
  for (std::size_t back = kSteps; back-- > 0;) {  // from the oldest
    const std::size_t at = (at_ + kSteps - back) % kSteps;
    Step& step = steps_[at];
    if (!step.waits || !timer_->passed(number_of(at, step.parts.size()))) continue;
    step.waits = false;
    newest.emplace();
    for (std::size_t i = 0; i < step.parts.size(); ++i)
      if (double StepTimes::*const part = part_of(step.parts[i]))
        *newest.*part += timer_->seconds(number_of(at, i), number_of(at, i + 1));
    trace(at);
  }
  return newest;
}

}  // namespace echelon::inline train
