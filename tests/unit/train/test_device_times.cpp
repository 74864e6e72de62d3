#include "train/device_times.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace echelon {
namespace {

// A device whose clock moves by what is enqueued, and whose readings pass when the test lets them.
struct Behind {
  double clock_s = 0;
  bool passes = true;
};

class BehindTimer final : public DeviceTimer {
 public:
  explicit BehindTimer(const Behind& device) : device_(device) {}
  void mark(std::size_t i) override { readings_[i] = device_.clock_s; }
  bool passed(std::size_t i) const override { return device_.passes && readings_.contains(i); }
  double seconds(std::size_t from, std::size_t to) const override { return readings_.at(to) - readings_.at(from); }

 private:
  const Behind& device_;
  std::map<std::size_t, double> readings_;
};

struct Run {
  Behind device;
  DeviceTimes times{std::make_unique<BehindTimer>(device)};

  void op(double seconds) { device.clock_s += seconds; }
  // A part of the host's, in which it enqueues an op, another part, and a second op.
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
  run.part(SpanKind::backward, 40, SpanKind::hooks, 7);  // hooks are no part of the device's: they stay with backward
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
  CHECK_FALSE(run.times.take());  // once

  run.times.begin_step();
  run.part(SpanKind::forward, 4);
  CHECK_FALSE(run.times.take());  // not over
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

}  // namespace
}  // namespace echelon
