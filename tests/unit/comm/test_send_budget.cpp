#include "comm/send_budget.hpp"

#include <catch2/catch.hpp>

namespace echelon {
namespace {

constexpr std::size_t kSegment = 256 << 10;

// A card of so many bytes a second, on which sends end one after the other, for a while.
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
  CHECK_FALSE(budget.allows(kSegment));  // it is for the most urgent plan, which comes first in the next pass
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

TEST_CASE("sends that wait for their receivers again and again are let through ever sooner", "[comm]") {
  SendBudget budget(1);
  budget.begin_pass();
  double now_s = 0;
  const auto stuck = [&] {  // all under way wait; one more goes, and that ends what waited
    const double patience_s = budget.patience_s();
    budget.idle(1.01 * patience_s);
    REQUIRE(budget.allows(1000));
    budget.began(1000, now_s += 1.01 * patience_s);
    budget.ended(1000, now_s += 1e-6);
    budget.begin_pass();
    budget.idle(0);
    return patience_s;
  };
  budget.began(1000, now_s);
  budget.ended(1000, now_s += 0.1);  // 10 kB/s: the receiver was late
  budget.begin_pass();
  budget.began(1000, now_s);
  budget.begin_pass();
  CHECK(stuck() > 0.04);
  for (int i = 0; i < 20; ++i) stuck();
  CHECK(budget.patience_s() < 30e-6);
}

}  // namespace echelon
