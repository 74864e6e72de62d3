#include "train/device_times.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/support/late_ops.hpp"

namespace echelon {
namespace {

using namespace test;

// A device whose ops take a set time, on a stream behind the host.
struct Sleeper {
  std::shared_ptr<LateStreams> streams = std::make_shared<LateStreams>();
  DeviceTimes times{make_late_timer(streams)};

  void op(int ms) {
    streams->put(kOpStream, [ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
  }
  // A part of the host's, in which it enqueues an op.
  void part(SpanKind kind, int ms, SpanKind inner = SpanKind::step, int inner_ms = 0) {
    double host_s = 0;
    const SpanTimer timer(host_s, kind);
    op(ms);
    if (inner_ms > 0) part(inner, inner_ms);
  }
};

// At least as long as its ops slept, and not much longer: the machine may be busy.
void check_part(double seconds, int ms) {
  CHECK(seconds >= 1e-3 * ms);
  CHECK(seconds < 1e-3 * ms + 0.5 * 0.04);
}

TEST_CASE("what a device behind the host spends on a part of a step is counted as that part", "[train]") {
  Sleeper device;
  SpanPlace place = span_place;
  place.borders = &device.times;
  const PlacedSpans placed(place);
  device.times.begin_step();
  device.part(SpanKind::data, 2);
  device.part(SpanKind::forward, 10, SpanKind::exchange_wait, 20);
  device.part(SpanKind::backward, 40);
  device.part(SpanKind::optimiser, 5);
  device.part(SpanKind::hooks, 30);  // no part of a step on the device
  device.times.end_step();
  device.op(50);  // of no step
  device.streams->finish(kOpStream);

  device.times.begin_step();
  device.part(SpanKind::forward, 1);
  const std::optional<StepTimes> first = device.times.take();
  REQUIRE(first);
  check_part(first->data_wait_s, 2);
  check_part(first->forward_s, 10);
  check_part(first->exchange_s, 20);
  check_part(first->backward_s, 40);
  check_part(first->optimiser_s, 5);
  CHECK(first->split_s == 0);
  CHECK_FALSE(device.times.take());  // once
  device.times.end_step();
  device.streams->finish(kOpStream);
  const std::optional<StepTimes> second = device.times.take();
  REQUIRE(second);
  check_part(second->forward_s, 1);
  CHECK(second->backward_s == 0);
}

TEST_CASE("times of a step that the device has not done are not waited for", "[train]") {
  Sleeper device;
  device.times.begin_step();
  bool may_run = false;
  device.streams->put_wait(kOpStream, [&] { return may_run; });
  device.times.end_step();
  for (int step = 0; step < 5; ++step) {  // the host runs ahead, further than readings are kept
    CHECK_FALSE(device.times.take());
    device.times.begin_step();
    device.times.end_step();
  }
  may_run = true;
  device.streams->finish(kOpStream);
  CHECK(device.times.take());
  CHECK_FALSE(device.times.take());
}

}  // namespace
}  // namespace echelon
