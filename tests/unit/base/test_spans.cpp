// SPDX-License-Identifier: Apache-2.0
// The recorder of spans: its window, ranks that serve, full buffers, and no cost when it is off.
#include <catch2/catch.hpp>

#include "base/spans.hpp"
#include "tests/support/allocations.hpp"

namespace echelon::test {
namespace {

class Fixed final : public Clock {
 public:
  mutable double at_s = 0;
  double now_s() const override { return at_s += 1; }
};

TEST_CASE("spans are kept in the window of steps alone", "[trace]") {
  SpanRecorder recorder(3, 4);
  for (int step = 0; step < 6; ++step) {
    recorder.after_step(step, step);
    CHECK(recorder.open() == (step == 2 || step == 3));
    recorder.add({.begin_s = step + 0.1, .end_s = step + 0.2, .kind = SpanKind::forward});
    CHECK(recorder.over() == (step >= 4));
  }
  const SpanRecorder::Contents contents = recorder.take();
  REQUIRE(contents.spans.size() == 2);
  CHECK(contents.spans[0].step == 3);
  CHECK(contents.spans[1].step == 4);
  CHECK(contents.dropped == 0);
  recorder.after_step(2, 7);
  CHECK(!recorder.open());  // for good
}

TEST_CASE("an exchange that began in the window counts when it ends later", "[trace]") {
  SpanRecorder recorder(1, 1);
  recorder.add_exchange(0.5, 0.6, 8, 0);  // before the window
  recorder.after_step(0, 1);
  recorder.after_step(1, 2);
  recorder.add_exchange(1.5, 2.5, 8, 1);
  recorder.add_exchange(2.1, 2.5, 8, 2);  // ends after the window
  recorder.add_exchange(0, 2.5, 8, 3);    // its begin is unknown
  const SpanRecorder::Contents contents = recorder.take();
  REQUIRE(contents.spans.size() == 1);
  CHECK(contents.spans[0].index == 1);
}

TEST_CASE("a rank that serves records from the first update near the window on", "[trace]") {
  SpanRecorder recorder(10, 12, true);
  recorder.begins_at(5);  // as in a resumed run
  CHECK(recorder.over());
  recorder.after_step(11, 0);
  CHECK(!recorder.open());
  recorder.worker_at(3, 1);
  CHECK(!recorder.open());
  recorder.worker_at(4, 2);  // step 9 is done, step 10 is in progress
  CHECK(recorder.open());
  recorder.worker_at(100, 3);
  CHECK(recorder.open());
}

TEST_CASE("spans beyond the room are counted", "[trace]") {
  SpanRecorder recorder(1, 1, false, 3);
  recorder.after_step(0, 0);
  for (int i = 0; i < 5; ++i) recorder.add({.kind = SpanKind::data});
  const SpanRecorder::Contents contents = recorder.take();
  CHECK(contents.spans.size() == 3);
  CHECK(contents.dropped == 2);
}

TEST_CASE("a timer adds up with and without a trace, and its span is of the same readings", "[trace]") {
  const Fixed clock;
  double total_s = 0;
  { const SpanTimer timer(total_s, SpanKind::optimiser, clock); }
  CHECK(total_s == 1);
  SpanRecorder recorder(1, 1);
  recorder.after_step(0, 0);
  {
    const PlacedSpans placed({.recorder = &recorder, .lane = SpanLane::engine});
    const SpanTimer timer(total_s, SpanKind::optimiser, clock);
  }
  { const SpanTimer timer(total_s, SpanKind::optimiser, clock); }  // this thread records nowhere any more
  CHECK(total_s == 3);
  const SpanRecorder::Contents contents = recorder.take();
  REQUIRE(contents.spans.size() == 1);
  CHECK(contents.spans[0].begin_s == 3);
  CHECK(contents.spans[0].end_s == 4);
  CHECK(contents.spans[0].lane == SpanLane::engine);
}

TEST_CASE("peers are named by their ranks in the world", "[trace]") {
  const int world[] = {4, 6};
  SpanRecorder recorder(1, 1);
  recorder.after_step(0, 0);
  const PlacedSpans placed({.recorder = &recorder, .lane = SpanLane::engine, .world = world});
  recorder.add({.peer = 1, .kind = SpanKind::send});
  recorder.add({.peer = -1, .kind = SpanKind::sum});
  const SpanRecorder::Contents contents = recorder.take();
  CHECK(contents.spans[0].peer == 6);
  CHECK(contents.spans[0].lane == SpanLane::sends);
  CHECK(contents.spans[1].peer == -1);
}

TEST_CASE("without a trace, and outside its window, spans allocate nothing", "[trace]") {
  double total_s = 0;
  SpanRecorder recorder(5, 6);
  recorder.after_step(0, 0);
  const std::uint64_t before = allocations();
  for (SpanRecorder* where : {static_cast<SpanRecorder*>(nullptr), &recorder}) {
    const PlacedSpans placed({.recorder = where});
    const SpanTimer timer(total_s, SpanKind::forward);
    const SpanScope scope(SpanKind::layer, "conv1");
  }
  CHECK(allocations() == before);
  CHECK(recorder.take().spans.empty());
}

}  // namespace
}  // namespace echelon::test
