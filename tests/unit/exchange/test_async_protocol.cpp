// SPDX-License-Identifier: Apache-2.0
// The asynchronous server's state machine on random schedules of virtual time: every push is applied exactly once, or
// dropped and counted; versions, staleness, factors and answers follow the definitions, which an observer with integer
// weights works out by itself; the bound holds; all ranks end; a recorded run can be repeated bit for bit.
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "base/error.hpp"
#include "tests/support/async_world.hpp"
#include "tests/support/ledger_rows.hpp"
#include "tests/support/schedules.hpp"

namespace echelon {
namespace {

using namespace test;

void run_schedule(std::uint64_t seed) { run_async(draw_async_schedule(seed)); }

// Records a run, and repeats it under other speeds, delays, stops and orders of ranks.
void replay_schedule(std::uint64_t seed) {
  AsyncSchedule schedule = draw_async_schedule(seed);
  const AsyncOutcome recorded = run_async(schedule);
  draw_async_timing(schedule, seed + 0x5eed);
  const AsyncOutcome repeated = run_async(schedule, recorded.ledgers);
  ECHELON_CHECK(repeated.ledgers == recorded.ledgers);
  ECHELON_CHECK(repeated.weights == recorded.weights);
  ECHELON_CHECK(repeated.pulled == recorded.pulled);
}

// Four workers, one of which is four times slower.
AsyncSchedule one_slow(std::int64_t steps, const AsyncRules& rules) {
  AsyncSchedule schedule = equal_workers(4, steps, rules);
  schedule.slowness.back() = 4;
  return schedule;
}

}  // namespace

TEST_CASE("the asynchronous protocol on 200 random schedules", "[exchange][protocol][asynchronous]") {
  run_schedules(200, run_schedule);
}
TEST_CASE("the asynchronous protocol on 10,000 random schedules", "[exchange][protocol][asynchronous][.soak]") {
  run_schedules(10'000, run_schedule);
}
TEST_CASE("200 recorded asynchronous runs are replayed to the same weights", "[exchange][protocol][asynchronous]") {
  run_schedules(200, replay_schedule);
}
TEST_CASE("10,000 recorded asynchronous runs are replayed to the same weights",
          "[exchange][protocol][asynchronous][.soak]") {
  run_schedules(10'000, replay_schedule);
}

TEST_CASE("the same schedule under another timing has another order", "[exchange][protocol][asynchronous]") {
  AsyncSchedule schedule = equal_workers(4, 50, {});
  const AsyncOutcome first = run_async(schedule);
  draw_async_timing(schedule, 3);
  CHECK(run_async(schedule).ledgers != first.ledgers);
}

TEST_CASE("a replay under other rules or with other work is refused", "[exchange][protocol][asynchronous]") {
  AsyncSchedule schedule = equal_workers(3, 20, {});
  const AsyncOutcome recorded = run_async(schedule);
  SECTION("soft synchronisation") { schedule.rules.soft = 2; }
  SECTION("dropping") { schedule.rules.drop_above = 1; }
  SECTION("fewer steps") { schedule.steps[1] = {19}; }
  SECTION("fewer workers") {
    schedule = equal_workers(2, 20, {});
    CHECK_THROWS_AS(run_async(schedule, {{{}}, {{}}, recorded.ledgers.back()}), DataError);
    return;
  }
  CHECK_THROWS_AS(run_async(schedule, recorded.ledgers), DataError);
}

TEST_CASE("the histogram of staleness is that of the written order, update by update",
          "[exchange][protocol][asynchronous]") {
  for (std::uint64_t seed = test_seed(); seed < test_seed() + 50; ++seed) {
    CAPTURE(seed);
    const AsyncSchedule schedule = draw_async_schedule(seed);
    const AsyncOutcome outcome = run_async(schedule);
    std::vector<StalenessTally> written(static_cast<std::size_t>(schedule.workers));
    for (const std::vector<LedgerBytes>& rank : outcome.ledgers)
      for (const LedgerBytes& ledger : rank)
        for (const test::LedgerRow& row : test::ledger_rows(ledger))
          if (row.entry.kind == AsyncKind::update)
            written[static_cast<std::size_t>(row.entry.worker)].add(row.entry.staleness, row.entry.dropped);
    for (std::size_t w = 0; w < written.size(); ++w) {
      REQUIRE(outcome.staleness[w].histogram == written[w].histogram);
      REQUIRE(outcome.staleness[w].applied == written[w].applied);
      REQUIRE(outcome.staleness[w].dropped == written[w].dropped);
      REQUIRE(outcome.staleness[w].most == written[w].most);
      REQUIRE(outcome.staleness[w].sum == written[w].sum);
    }
  }
}

TEST_CASE("equal workers: the mean staleness of 1,000 updates is k - 1 within 1 %",
          "[exchange][protocol][asynchronous]") {
  for (const int k : {2, 4, 8}) {
    const StalenessTally all = run_async(equal_workers(k, 1000 / k, {})).all();
    CHECK(all.applied == 1000);
    CHECK(all.dropped == 0);
    CHECK(all.mean() == Approx(k - 1).epsilon(0.01));
    CHECK(all.held_s == 0);
  }
}

TEST_CASE("soft synchronisation: the mean staleness of 1,000 updates is (k - 1) / S within 2 %",
          "[exchange][protocol][asynchronous]") {
  for (const int k : {2, 4, 8})
    for (const int s : {1, 2, 4, 8}) {
      if (s > k) continue;
      CAPTURE(k, s);
      const StalenessTally all = run_async(equal_workers(k, 1000 / k, {.soft = s})).all();
      CHECK(all.mean() == Approx(static_cast<double>(k - 1) / s).epsilon(0.02));
    }
}

TEST_CASE("without rules nobody waits for a slow worker", "[exchange][protocol][asynchronous]") {
  const AsyncSchedule equal = equal_workers(4, 100, {}), slow = one_slow(100, {});
  const AsyncOutcome with = run_async(slow), without = run_async(equal);
  for (std::size_t w = 0; w < 3; ++w) {
    CAPTURE(w);
    // A push and an answer have less than 100 bytes and come behind those of three others: 10 us of latency each way.
    CHECK(std::abs(with.last_push_s[w] - without.last_push_s[w]) < 5e-6);
    CHECK(with.last_push_s[w] < 100 * (slow.compute_s * (1 + slow.spread / 2) + 25e-6));
  }
  CHECK(with.last_push_s[3] > 3 * with.last_push_s[0]);
  CHECK(with.all().held_s == 0);
}

TEST_CASE("the bound in clocks holds and is used in full, with one worker four times slower",
          "[exchange][protocol][asynchronous]") {
  for (const std::int64_t s : {0, 1, 3, 10}) {
    CAPTURE(s);
    const AsyncOutcome outcome = run_async(one_slow(100, {.bound = s}));
    CHECK(outcome.lead == s);
    CHECK(outcome.all().most <= (2 * s + 1) * 3);
    CHECK(outcome.staleness[0].held_s > 0.01);  // fast workers wait for the slowest
    CHECK(outcome.staleness[3].held_s == 0);    // which waits for nobody
  }
  CHECK(run_async(one_slow(100, {})).lead > 50);
}

TEST_CASE("bound 0 is lock-step: each clock is pulled by all before the next one is pushed",
          "[exchange][protocol][asynchronous]") {
  AsyncSchedule schedule = one_slow(20, {.soft = 4, .bound = 0});
  schedule.disturbance[0].delay_s = 50e-6;
  const AsyncOutcome outcome = run_async(schedule);
  for (const std::vector<Integers>& worker : outcome.pulled)
    for (std::size_t t = 0; t < 20; ++t) CHECK(worker[0][t] == static_cast<std::int64_t>(t) + 1);
  CHECK(outcome.all().most == 0);
}

TEST_CASE("updates above the limit of staleness are dropped and counted for their worker",
          "[exchange][protocol][asynchronous]") {
  const AsyncOutcome outcome = run_async(one_slow(100, {.drop_above = 6}));
  CHECK(outcome.staleness[3].dropped > 20);  // all its pushes while the others run; then it is alone
  CHECK(outcome.staleness[0].dropped == 0);
  for (const StalenessTally& worker : outcome.staleness) {
    CHECK(worker.applied + worker.dropped == 100);
    CHECK(worker.most <= 6);
  }
}

}  // namespace echelon
