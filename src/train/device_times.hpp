// SPDX-License-Identifier: Apache-2.0
// Times of the parts of a step on a device that runs behind the host, by the device's own clock.
//
// The host's timers would measure only how long calls took. The work that a call enqueues runs later, and its time
// would be counted where the host happens to wait. Each border between two parts, as the spans of the compute thread
// set them (base/spans.hpp), therefore enqueues a reading of the device's clock, and the time between two readings
// belongs to the innermost part that was open between them. Nothing waits for a reading: those of a step are taken up
// when all of them have passed, usually a step later.
//
// The parts of traced steps (base/spans.hpp) also become spans of the device's lane. The host waits for one reading,
// twice before the first traced step, to find the offset of the device's clock from its own; end_run waits for the
// traced steps that remain.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/spans.hpp"
#include "device/device_timer.hpp"
#include "report/figures.hpp"

namespace echelon::inline train {

class DeviceTimes final : public SpanWatcher {
 public:
  explicit DeviceTimes(std::unique_ptr<DeviceTimer> timer) : timer_(std::move(timer)) {}

  // The parts from here to end_step are those of one step. Time of the device between two steps belongs to none.
  void begin_step();
  void end_step();
  // Called after the last step: waits for the traced steps that were not taken up, and records their spans.
  void end_run();

  // Returns the times of the newest step whose readings have all passed, each step once: data, forward, backward,
  // split, exchange and optimiser. The other parts are 0.
  std::optional<StepTimes> take();

  // SpanWatcher
  void begins(SpanKind kind) override;
  void ends(SpanKind kind, double begin_s) override;

 private:
  static constexpr std::size_t kSteps = 3;   // whose readings are kept: the one under way, and those that it runs ahead
  static constexpr std::size_t kAnchor = 0;  // the number of the reading whose time is known by the host's clock
  struct Step {
    std::vector<SpanKind> parts;  // of the time before each reading but the first; SpanKind::step: none
    bool waits = false;           // its readings are enqueued, and not taken up
    std::int64_t traced = 0;      // the step of the trace; 0: not traced
  };
  void mark();
  void anchor();
  void trace(std::size_t at) const;
  std::size_t number_of(std::size_t step, std::size_t reading) const { return 1 + reading * kSteps + step; }

  std::unique_ptr<DeviceTimer> timer_;
  std::array<Step, kSteps> steps_;
  std::size_t at_ = 0;  // the step under way
  bool open_ = false;
  std::optional<double> anchor_s_;  // by the host's clock
  std::vector<SpanKind> within_;    // the parts that are open, innermost last
};

}  // namespace echelon::inline train
