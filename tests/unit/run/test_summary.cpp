// SPDX-License-Identifier: Apache-2.0
#include "run/summary.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/progress.hpp"
#include "report/figures.hpp"
#include "tests/support/random.hpp"
#include "train/hooks/agreement.hpp"
#include "train/hooks/progress.hpp"

namespace echelon {
namespace {

TEST_CASE("the parts of the time sum to 100.0", "[train]") {
  for (int round = 0; round < 100; ++round) {
    std::vector<double> parts = test::random_values(7, "parts" + std::to_string(round));
    for (double& part : parts) part = std::abs(part);
    if (round % 3 == 0) parts[2] = 0;
    const std::vector<double> percent = percent_parts(parts);
    const double sum = std::accumulate(percent.begin(), percent.end(), 0.0);
    CHECK(std::abs(sum - 100) < 1e-9);
    const double whole = std::accumulate(parts.begin(), parts.end(), 0.0);
    for (std::size_t i = 0; i < parts.size(); ++i) CHECK(std::abs(percent[i] - 100 * parts[i] / whole) < 0.1 + 1e-9);
  }
  CHECK(percent_parts({0, 0}) == std::vector<double>{0, 0});
}

TEST_CASE("median and quartiles", "[train]") {
  CHECK(quartiles_of({}).median == 0);
  CHECK(quartiles_of({3}).p75 == 3);
  const Quartiles spread = quartiles_of({5, 1, 4, 2, 3});
  CHECK(spread.median == 3);
  CHECK(spread.p25 == 2);
  CHECK(spread.p75 == 4);
  CHECK(quartiles_of({1, 2}).median == 1.5);
}

TEST_CASE("the rank whose weights differ from the majority is named", "[train]") {
  using Ranks = std::vector<int>;
  CHECK(split_of({"a"}).odd.empty());
  CHECK(split_of({"a", "a", "a"}).odd.empty());
  CHECK(split_of({"b", "a", "a"}).odd == Ranks{0});
  CHECK(split_of({"b", "a", "a"}).common == 1);
  CHECK(split_of({"a", "a", "b"}).odd == Ranks{2});
  CHECK(split_of({"a", "c", "a", "b", "a"}).odd == Ranks{1, 3});
  CHECK(split_of({"a", "c", "a", "b", "a"}).majority);
  CHECK(split_of({"a", "b"}).odd == Ranks{1});
  CHECK(!split_of({"a", "b"}).majority);
  CHECK(split_of({"b", "a", "a", "c"}).common == 1);
  CHECK(!split_of({"b", "a", "a", "c"}).majority);
}

TEST_CASE("the first step is measured apart", "[train]") {
  StatisticsHook statistics;
  for (int step = 1; step <= 4; ++step) {
    StepRecord record;
    record.step = step;
    record.samples = 10;
    record.times.total_s = step == 1 ? 100 : 2 + step;
    record.times.hooks_s = 2;
    statistics.step_end(record);
    statistics.step_recorded(record);
  }
  CHECK(statistics.measured_steps() == 3);
  CHECK(statistics.step_s().median == Approx(3));
  CHECK(statistics.times().total_s == Approx(115));
  CHECK(statistics.first_step_s() > 0);
}

TEST_CASE("a warm-up of several steps is in no rate and no sum", "[train]") {
  const auto after = [](int warmup_steps, int steps) {
    StatisticsHook statistics(warmup_steps);
    for (int step = 1; step <= steps; ++step) {
      StepRecord record;
      record.step = step;
      record.samples = 10;
      record.times.total_s = step < 4 ? 100 : 5;
      record.outcome.exchange_wait_s = step;
      record.outcome.codec = {.bytes_before = 8, .bytes_after = 4, .seconds = 0.5};
      statistics.step_end(record);
      statistics.step_recorded(record);
    }
    return statistics;
  };
  const StatisticsHook statistics = after(4, 6);  // the sums hold the 4th step, the rates do not
  CHECK(statistics.steps() == 6);
  CHECK(statistics.measured_steps() == 2);
  CHECK(statistics.steps_in_sums() == 3);
  CHECK(statistics.steps_before_sums() == 3);
  CHECK(statistics.warmup_s() == Approx(300));
  CHECK(statistics.times().total_s == Approx(15));
  CHECK(statistics.exposed_s() == Approx(4 + 5 + 6));
  CHECK(statistics.codec_s() == Approx(3 * 0.5));  // counted over the same steps as the exchange
  CHECK(statistics.codec().seconds == Approx(6 * 0.5));
  CHECK(after(4, 4).measured_steps() == 1);
  // A resumed attempt may be shorter than the warm-up.
  CHECK(after(4, 3).measured_steps() == 2);
  CHECK(after(4, 3).steps_in_sums() == 3);
  CHECK(after(4, 3).warmup_s() == 0);
  CHECK(after(4, 0).measured_steps() == 0);
}

TEST_CASE("a progress bar fills from the left", "[train]") {
  CHECK(bar_text(0, 4) == "[....]");
  CHECK(bar_text(0.5, 4) == "[##..]");
  CHECK(bar_text(1, 4) == "[####]");
  CHECK(bar_text(7, 4) == "[####]");
}

}  // namespace
}  // namespace echelon
