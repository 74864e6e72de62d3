// SPDX-License-Identifier: Apache-2.0
// Decentralised exchange's state machine on random schedules of virtual time, with real messages: each message is
// applied once by every other replica and in order, also around a ring; at meetings all messages have arrived; sent
// messages and residuals add up to the updates; slots are bounded; synchronous replicas are equal bit by bit; all ranks
// end. The same loops are replayed too.
#include <catch2/catch.hpp>
#include <cstring>

#include "base/check.hpp"
#include "tests/support/schedules.hpp"
#include "tests/support/strom_world.hpp"

namespace echelon {
namespace {

using namespace test;

void run_schedule(std::uint64_t seed) { run_strom(draw_strom_schedule(seed)); }

void replay_schedule(std::uint64_t seed) {
  StromSchedule schedule = draw_strom_schedule(seed);
  schedule.format.dtype = DType::f64;
  schedule.warmup_steps = 0;
  if (schedule.format.tau == 0) schedule.format.tau = 0.1;
  const StromOutcome recorded = run_strom(schedule);
  const std::vector<std::vector<double>> weights = replay_strom(schedule, recorded);
  for (std::size_t r = 0; r < weights.size(); ++r)
    ECHELON_CHECK(std::memcmp(weights[r].data(), recorded.weights[r].data(), recorded.weights[r].size()) == 0,
                  "weights of rank {}", r);
}

}  // namespace

TEST_CASE("decentralised exchange on 200 random schedules", "[exchange][protocol][strom]") {
  run_schedules(200, run_schedule);
}
TEST_CASE("decentralised exchange on 10,000 random schedules", "[exchange][protocol][strom][.soak]") {
  run_schedules(10'000, run_schedule);
}
TEST_CASE("100 runs of decentralised exchange equal plain loops over their arrivals", "[exchange][protocol][strom]") {
  run_schedules(100, replay_schedule);
}
TEST_CASE("5,000 runs of decentralised exchange equal plain loops over their arrivals",
          "[exchange][protocol][strom][.soak]") {
  run_schedules(5'000, replay_schedule);
}

TEST_CASE("an update is k (k-1) messages of 4 + 4 n bytes, straight or around a ring", "[exchange][protocol][strom]") {
  for (const int k : {2, 3, 5})
    for (const bool ring : {false, true}) {
      CAPTURE(k, ring);
      StromSchedule schedule = equal_replicas(k, 20, false);
      schedule.ring = ring;
      const StromOutcome outcome = run_strom(schedule);
      CHECK(outcome.sent_messages == static_cast<std::uint64_t>(20 * k * (k - 1)));
      std::uint64_t bytes = 0;
      for (const auto& of_rank : outcome.messages)
        for (const auto& message : of_rank[0]) {
          CHECK(message.size() % 4 == 0);
          CHECK(message.size() >= 4);
          bytes += message.size() * static_cast<std::uint64_t>(k - 1);
        }
      CHECK(outcome.sent_bytes == bytes);
    }
}

TEST_CASE("asynchronous replicas wait for nobody between meetings, and keep back what a slow one cannot take",
          "[exchange][protocol][strom]") {
  for (const bool ring : {false, true})
    for (const bool stopped : {false, true}) {
      CAPTURE(ring, stopped);
      StromSchedule equal = equal_replicas(4, 50, true);
      equal.ring = ring;
      StromSchedule slow = equal;
      if (stopped)
        slow.disturbance[3].stop_at_s = 1e-3, slow.disturbance[3].stop_for_s = 20e-3;
      else
        slow.slowness[3] = 40;
      const StromOutcome with = run_strom(slow), without = run_strom(equal);
      for (std::size_t r = 0; r < 3; ++r) {
        CHECK(without.held[r] == 0);
        CHECK(with.ended_s[r] == Approx(without.ended_s[r]).epsilon(1e-9));
      }
      CHECK(with.held[2] > 20);  // the slow replica is the next one on the ring
      if (!ring) CHECK(with.held[0] > 20);
    }
}

TEST_CASE("synchronous replicas wait for the slowest", "[exchange][protocol][strom]") {
  StromSchedule schedule = equal_replicas(3, 20, false);
  schedule.slowness[1] = 4;
  const StromOutcome outcome = run_strom(schedule);
  for (const double ended_s : outcome.ended_s) CHECK(ended_s > 19 * 4 * schedule.compute_s);
}

}  // namespace echelon
