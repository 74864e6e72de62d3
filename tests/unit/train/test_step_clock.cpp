// SPDX-License-Identifier: Apache-2.0
// The times of a step: parts that spans enter and leave, by a clock that a test sets.
#include <catch2/catch.hpp>

#include "train/step_clock.hpp"

namespace echelon {
namespace {

struct SetClock final : Clock {
  double at_s = 100;
  double now_s() const override { return at_s; }
};

// Passes a second at the end of each span of forward.
struct Sleeper final : SpanWatcher {
  SetClock& clock;
  explicit Sleeper(SetClock& the_clock) : clock(the_clock) {}
  void begins(SpanKind) override {}
  void ends(SpanKind kind, double) override { clock.at_s += kind == SpanKind::forward ? 1 : 0; }
};

TEST_CASE("a part of a step that is entered leaves the one around it", "[train]") {
  SetClock clock;
  StepClock times(clock);
  const PlacedSpans placed(times.watch(span_place));
  clock.at_s += 0.5;  // in no part
  {
    const WatchedSpan forward(SpanKind::forward, clock);
    clock.at_s += 1;
    {
      const WatchedSpan split(SpanKind::split_wait, clock);
      clock.at_s += 2;
    }
    {
      const WatchedSpan layer(SpanKind::layer, clock);  // within forward
      clock.at_s += 4;
    }
    const WatchedSpan wait(SpanKind::exchange_wait, clock);  // counted by the strategy
    clock.at_s += 8;
  }
  times.read();
  CHECK(times.times().forward_s == 5);
  CHECK(times.times().split_s == 2);
  CHECK(times.times().exchange_s == 0);
  CHECK(times.times().total_s == 15.5);
  times.restart();
  CHECK(times.start_s() == 115.5);
  clock.at_s += 1;
  times.read();
  CHECK(times.times().forward_s == 0);
  CHECK(times.times().total_s == 1);
}

TEST_CASE("spans do not divide a held part of a step", "[train]") {
  SetClock clock;
  StepClock times(clock);
  const PlacedSpans placed(times.watch(span_place));
  {
    const StepClock::Held hooks(times, &StepTimes::hooks_s);
    clock.at_s += 1;
    {
      const StepClock::Held evaluation(times, &StepTimes::evaluation_s);
      const WatchedSpan forward(SpanKind::forward, clock);
      clock.at_s += 2;
    }
    clock.at_s += 4;
  }
  CHECK(times.times().hooks_s == 5);
  CHECK(times.times().evaluation_s == 2);
  CHECK(times.times().forward_s == 0);
}

TEST_CASE("a watcher inside the clock of a step may pass time in a part", "[train]") {
  SetClock clock;
  Sleeper sleeper(clock);
  SpanPlace place = span_place;
  place.watcher = &sleeper;
  StepClock times(clock);
  const PlacedSpans placed(times.watch(place));
  { const WatchedSpan forward(SpanKind::forward, clock); }
  CHECK(times.times().forward_s == 1);
}

}  // namespace
}  // namespace echelon
