// SPDX-License-Identifier: Apache-2.0
// Offsets between the clocks of ranks, for clocks whose offsets are known.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/check.hpp"
#include "comm/clock_offsets.hpp"
#include "tests/support/ranks.hpp"

namespace echelon::test {
namespace {

// The host's clock, ahead by a constant and faster by a rate since its construction.
class Skewed final : public Clock {
 public:
  Skewed(double ahead_s, double rate, double since_s) : ahead_s_(ahead_s), rate_(rate), since_s_(since_s) {}
  double now_s() const override {
    const double host_s = echelon::now_s();
    return host_s + ahead_s_ + rate_ * (host_s - since_s_);
  }
  double ahead_at(double host_s) const { return ahead_s_ + rate_ * (host_s - since_s_); }

 private:
  double ahead_s_, rate_, since_s_;
};

double ahead_s(int rank) { return rank == 0 ? 0.0 : rank % 2 == 0 ? 3.5 * rank : -1e4 * rank; }

TEST_CASE("offsets of skewed clocks are found within the error that is stated", "[comm][trace]") {
  const int ranks = GENERATE(1, 2, 5);
  std::vector<ClockOffset> offsets;
  std::atomic<bool> elsewhere = false;
  run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const Skewed clock(ahead_s(engine.rank()), 0, 0);
    std::vector<ClockOffset> all = estimate_clock_offsets(engine, 0, clock);
    if (engine.rank() == 0)
      offsets = std::move(all);
    else
      elsewhere = elsewhere || !all.empty();
  });
  REQUIRE(offsets.size() == static_cast<std::size_t>(ranks));
  CHECK(!elsewhere);
  CHECK(offsets[0].offset_s == 0);
  CHECK(offsets[0].error_s == 0);
  for (int rank = 1; rank < ranks; ++rank) {
    const ClockOffset& offset = offsets[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << offset.offset_s << " +- " << offset.error_s);
    CHECK(offset.error_s > 0);
    CHECK(offset.error_s < 5e-3);
    CHECK(std::abs(offset.offset_s - ahead_s(rank)) <= offset.error_s + 1e-9);
  }
}

TEST_CASE("between two estimates a clock that drifts is met", "[comm][trace]") {
  const double start_s = now_s();
  const Skewed drifting(7, 1e-2, start_s);
  std::vector<ClockOffset> before, after;
  double middle_s = 0;
  run_ranks(2, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const Clock& clock = engine.rank() == 0 ? host_clock() : static_cast<const Clock&>(drifting);
    std::vector<ClockOffset> first = estimate_clock_offsets(engine, 0, clock);
    const double from_s = now_s();
    while (now_s() < from_s + 0.1) {
    }
    std::vector<ClockOffset> second = estimate_clock_offsets(engine, 0, clock);
    if (engine.rank() > 0) return;
    before = std::move(first), after = std::move(second);
    middle_s = from_s + 0.05;
  });
  const double theirs_s = middle_s + drifting.ahead_at(middle_s);
  const double error_s = std::max(before[1].error_s, after[1].error_s);
  CHECK(std::abs(theirs_s - offset_at(before[1], after[1], theirs_s) - middle_s) <= error_s + 1e-9);
  CHECK(std::abs(after[1].offset_s - before[1].offset_s) > 0.5e-3);  // the clock did drift
  CHECK(offset_at(before[1], before[1], theirs_s) == before[1].offset_s);
}

TEST_CASE("texts of all ranks come to rank 0 in order, empty and long ones too", "[comm][trace]") {
  std::map<int, std::string> came;
  std::vector<int> order;
  const auto text_of = [](int rank) {
    return rank == 1 ? std::string()
                     : std::string(static_cast<std::size_t>(rank) * 100'000 + 3, static_cast<char>('a' + rank));
  };
  run_ranks(4, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    collect_texts(engine, 0, text_of(engine.rank()), [&](int rank, const std::string& text) {
      ECHELON_CHECK_EQ(engine.rank(), 0);
      order.push_back(rank);
      came[rank] = text;
    });
  });
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) CHECK(came[rank] == text_of(rank));
}

}  // namespace
}  // namespace echelon::test
