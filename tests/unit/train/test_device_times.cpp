// SPDX-License-Identifier: Apache-2.0
#include "train/device_times.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace echelon {
namespace {

// A device whose clock advances by the enqueued work, and whose readings pass when the test permits it.
struct Behind {
  double clock_s = 0;
  bool passes = true;
  int waits = 0;
};

class BehindTimer final : public DeviceTimer {
 public:
  explicit BehindTimer(Behind& device) : device_(device) {}
  void mark(std::size_t i) override { readings_[i] = device_.clock_s; }
  bool passed(std::size_t i) const override { return device_.passes && readings_.contains(i); }
  void wait(std::size_t i) const override {
    REQUIRE(readings_.contains(i));
    ++device_.waits;
  }
  double seconds(std::size_t from, std::size_t to) const override { return readings_.at(to) - readings_.at(from); }

 private:
  Behind& device_;
  std::map<std::size_t, double> readings_;
};

struct Run {
  Behind device;
  DeviceTimes times{std::make_unique<BehindTimer>(device)};

  void op(double seconds) { device.clock_s += seconds; }
  // Runs a part of the host's step, in which it enqueues an op, another part, and a second op.
  void part(SpanKind kind, double seconds, SpanKind inner = SpanKind::step, double inner_s = 0, double after_s = 0) {
    double host_s = 0;
    const SpanTimer timer(host_s, kind);
    op(seconds);
    if (inner_s > 0) part(inner, inner_s);
    op(after_s);
  }
};

TEST_CASE("what a device behind the host spends on a part of a step is counted as that part", "[train]") {
  Run run;
  SpanPlace place = span_place;
  place.borders = &run.times;
  const PlacedSpans placed(place);
  run.op(100);  // before the step
  run.times.begin_step();
  run.part(SpanKind::data, 2);
  run.part(SpanKind::forward, 10, SpanKind::exchange_wait, 20, 1);
  run.op(300);                                           // in no part
  run.part(SpanKind::backward, 40, SpanKind::hooks, 7);  // the device has no part for hooks: they stay with backward
  run.part(SpanKind::split_wait, 3);
  run.part(SpanKind::backward, 0.5);
  run.part(SpanKind::optimiser, 5);
  run.part(SpanKind::hooks, 30);
  run.times.end_step();
  run.op(50);  // between steps
  const std::optional<StepTimes> first = run.times.take();
  REQUIRE(first);
  CHECK(first->data_wait_s == Approx(2));
  CHECK(first->forward_s == Approx(11));
  CHECK(first->exchange_s == Approx(20));
  CHECK(first->backward_s == Approx(47.5));
  CHECK(first->split_s == Approx(3));
  CHECK(first->optimiser_s == Approx(5));
  CHECK(first->hooks_s == 0);
  CHECK_FALSE(run.times.take());  // only once

  run.times.begin_step();
  run.part(SpanKind::forward, 4);
  CHECK_FALSE(run.times.take());  // the step is not over
  run.times.end_step();
  const std::optional<StepTimes> second = run.times.take();
  REQUIRE(second);
  CHECK(second->forward_s == Approx(4));
  CHECK(second->backward_s == 0);
}

TEST_CASE("times of a step that the device has not done are not waited for", "[train]") {
  Run run;
  SpanPlace place = span_place;
  place.borders = &run.times;
  const PlacedSpans placed(place);
  run.device.passes = false;
  for (int step = 1; step <= 5; ++step) {  // the host runs ahead, further than readings are kept
    run.times.begin_step();
    run.part(SpanKind::forward, step);
    run.times.end_step();
    CHECK_FALSE(run.times.take());
  }
  run.device.passes = true;
  const std::optional<StepTimes> newest = run.times.take();
  REQUIRE(newest);
  CHECK(newest->forward_s == Approx(5));
  CHECK_FALSE(run.times.take());
}

TEST_CASE("a trace has the device's parts of its steps, where the host's clock puts them", "[train]") {
  Run run;
  SpanRecorder recorder(2, 3);
  recorder.begins_at(0);
  SpanPlace place = span_place;
  place.borders = &run.times;
  place.recorder = &recorder;
  const PlacedSpans placed(place);
  const auto step = [&](double scale) {
    run.times.begin_step();
    run.part(SpanKind::forward, 1 * scale, SpanKind::exchange_wait, 2 * scale, 3 * scale);
    run.op(10 * scale);  // in no part
    run.part(SpanKind::backward, 4 * scale);
    run.part(SpanKind::optimiser, 5 * scale);
    run.times.end_step();
  };
  recorder.after_step(0, now_s());
  step(7);
  (void)run.times.take();
  CHECK(run.device.waits == 0);  // only the first step of the trace waits
  run.op(1000);
  recorder.after_step(1, now_s());
  const double before_s = now_s(), device_s = run.device.clock_s;
  step(0.01);
  const double after_s = now_s();
  CHECK(run.device.waits == 2);
  run.device.passes = false;
  CHECK_FALSE(run.times.take());  // the times come late
  recorder.after_step(2, now_s());
  run.op(0.5);
  step(0.02);
  recorder.after_step(3, now_s());  // the window is closed, and the device's times are not known yet
  run.device.passes = true;
  run.times.end_run();
  CHECK(run.device.waits == 4);

  struct Expected {
    SpanKind kind;
    std::int64_t step;
    double begin_s, seconds;  // on the device's clock, from the first traced step on
  };
  const Expected expected[] = {
      {SpanKind::forward, 2, 0, 0.01},          {SpanKind::exchange_wait, 2, 0.01, 0.02},
      {SpanKind::forward, 2, 0.03, 0.03},       {SpanKind::backward, 2, 0.16, 0.04},
      {SpanKind::optimiser, 2, 0.2, 0.05},      {SpanKind::forward, 3, 0.75, 0.02},
      {SpanKind::exchange_wait, 3, 0.77, 0.04}, {SpanKind::forward, 3, 0.81, 0.06},
      {SpanKind::backward, 3, 1.07, 0.08},      {SpanKind::optimiser, 3, 1.15, 0.1},
  };
  std::vector<Span> spans;
  for (const Span& span : recorder.take().spans)
    if (span.lane == SpanLane::device) spans.push_back(span);
  REQUIRE(spans.size() == std::size(expected));
  CHECK(device_s > 1000);
  CHECK(spans[0].begin_s >= before_s);
  CHECK(spans[0].begin_s <= after_s);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    INFO(i);
    CHECK(spans[i].kind == expected[i].kind);
    CHECK(spans[i].step == expected[i].step);
    CHECK(spans[i].begin_s - spans[0].begin_s == Approx(expected[i].begin_s).margin(1e-6));
    CHECK(spans[i].end_s - spans[i].begin_s == Approx(expected[i].seconds).margin(1e-6));
  }
}

}  // namespace
}  // namespace echelon
