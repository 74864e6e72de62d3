// SPDX-License-Identifier: Apache-2.0
#include "comm/send_budget.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace echelon {
namespace {

constexpr std::size_t kSegment = 256 << 10;

// Completes sends one after another for a while, as a card of `bytes_per_s` does.
void load(SendBudget& budget, double bytes_per_s) {
  double now_s = 0;
  for (int i = 0; i < 50; ++i) {
    budget.began(kSegment, now_s);
    now_s += static_cast<double>(kSegment) / bytes_per_s;
    budget.ended(kSegment, now_s);
  }
}

int sends_that_fit(SendBudget& budget, std::size_t bytes) {
  int sends = 0;
  for (; sends < 100 && budget.allows(bytes); ++sends) budget.began(bytes, 0);
  return sends;
}

}  // namespace

TEST_CASE("a budget of sends is of messages until the card's rate is known, then of bytes too", "[comm]") {
  SendBudget budget(8);
  SECTION("not known") { CHECK(sends_that_fit(budget, kSegment) == 8); }
  SECTION("100 Mbit/s: one segment, and short messages beside it") {
    load(budget, 12e6);
    CHECK(budget.bytes_per_s() == Approx(12e6));
    CHECK(sends_that_fit(budget, kSegment) == 1);
    CHECK(sends_that_fit(budget, 4096) == 7);
  }
  SECTION("2 Gbit/s: as many as it takes in 2 ms") {
    load(budget, 250e6);
    CHECK(sends_that_fit(budget, kSegment) == 1);
    CHECK(sends_that_fit(budget, kSegment / 4) == 3);
  }
  SECTION("25 Gbit/s") {
    load(budget, 3e9);
    CHECK(sends_that_fit(budget, kSegment) == 8);
  }
}

TEST_CASE("room is made at the next pass, and for one send more where nothing moves for long", "[comm]") {
  SendBudget budget(2);
  budget.begin_pass();
  CHECK(sends_that_fit(budget, kSegment) == 2);
  budget.ended(kSegment, 1e-3);
  CHECK_FALSE(budget.allows(kSegment));  // it is kept for the most urgent plan, which comes first in the next pass
  budget.begin_pass();
  CHECK(sends_that_fit(budget, kSegment) == 1);
  budget.idle(10e-6);
  CHECK_FALSE(budget.allows(1));
  budget.idle(30e-6);
  CHECK(sends_that_fit(budget, kSegment) == 1);

  SendBudget slow(8);
  load(slow, 12e6);
  slow.begin_pass();
  CHECK(sends_that_fit(slow, kSegment) == 1);  // 22 ms
  slow.idle(30e-3);
  CHECK_FALSE(slow.allows(kSegment));
  slow.idle(45e-3);
  CHECK(slow.allows(kSegment));
  slow.idle(0);
  CHECK_FALSE(slow.allows(kSegment));
}

TEST_CASE("sends that wait for their receivers do not make a card slow", "[comm]") {
  SendBudget budget(1);
  double now_s = 0;
  const auto late = [&](std::size_t bytes) {
    budget.began(bytes, now_s);
    budget.ended(bytes, now_s += 0.1);
  };
  SECTION("short ones") {
    for (int i = 0; i < 20; ++i) late(1000);
    CHECK(std::isinf(budget.bytes_per_s()));
    CHECK(budget.patience_s() < 30e-6);
  }
  SECTION("long ones: no slower than any card") {
    for (int i = 0; i < 20; ++i) late(20'000);
    CHECK(budget.bytes_per_s() == Approx(5e6));
    budget.began(20'000, now_s);
    CHECK(budget.patience_s() < 9e-3);
  }
  SECTION("one that waits until another is let through: the wait does not count") {
    load(budget, 100e6);
    now_s = 1;
    budget.begin_pass();
    budget.began(kSegment, now_s);
    for (int i = 0; i < 20; ++i) {
      budget.begin_pass();
      const double patience_s = 1.01 * budget.patience_s();
      budget.idle(patience_s);
      REQUIRE(budget.allows(kSegment));
      budget.began(kSegment, now_s += patience_s);
      budget.idle(0);
      budget.ended(kSegment, now_s += static_cast<double>(kSegment) / 100e6);
    }
    CHECK(budget.bytes_per_s() == Approx(100e6));
  }
}

}  // namespace echelon
