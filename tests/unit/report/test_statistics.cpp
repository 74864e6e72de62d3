// SPDX-License-Identifier: Apache-2.0
// The statistics of a verdict compared with values from tables or counted by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "report/statistics/looks.hpp"
#include "report/statistics/paired.hpp"
#include "report/statistics/power.hpp"

namespace echelon {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the paired t of five differences is that of the tables", "[report][verdict]") {
  const PairedMean d = paired_mean({1, 2, 3, 4, 5});
  CHECK(d.mean == Approx(3));
  CHECK(d.sd == Approx(std::sqrt(2.5)));
  CHECK(d.low == Approx(3 - 2.776445 * std::sqrt(0.5)));  // t of 4 degrees of freedom at 97.5 %
  CHECK(d.high == Approx(3 + 2.776445 * std::sqrt(0.5)));
  CHECK(d.above(0) == Approx(0.006620).margin(5e-6));  // t = 4.2426
  CHECK(d.below(6) == Approx(0.006620).margin(5e-6));
  CHECK(d.above(3) == Approx(0.5));
  CHECK(d.above(0) + d.below(0) == Approx(1));
}

TEST_CASE("equal bits in every pair are no chance, and one pair shows nothing", "[report][verdict]") {
  const PairedMean same = paired_mean({0, 0, 0});
  CHECK(same.above(-0.01) == 0);
  CHECK(same.above(0) == 1);
  CHECK(same.low == 0);
  CHECK(paired_mean({5}).above(0) == 1);
  CHECK(std::isnan(paired_mean({5}).low));
}

TEST_CASE("sign flips count the patterns that reach the sum", "[report][verdict]") {
  CHECK(sign_flips_above({1, 2, 3, 4, 5, 6, 7, 8}, 0) == Approx(1.0 / 256));
  CHECK(sign_flips_above({1, 1, 1, -1}, 0) == Approx(5.0 / 16));  // none or one of four is minus
  CHECK(sign_flips_above({1, 2, 3}, 10) == 1);
  CHECK(sign_flips_above({0.1, 0.2, 0.3}, 0) == Approx(1.0 / 8));  // sums that differ only by rounding count as equal
  CHECK(sign_flips_above(std::vector<double>(20, 1.0), 0) == Approx(std::pow(2.0, -20)));
  CHECK(sign_flips_above(std::vector<double>(30, 1.0), 0) == Approx(1.0 / 100'001));  // drawn: none of 100,000
}

TEST_CASE("the rank sum counts subsets, and repetitions that never reached it come last", "[report][verdict]") {
  CHECK(rank_sum_above({4, 5, 6}, {1, 2, 3}) == Approx(1.0 / 20));
  CHECK(rank_sum_above({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}) == Approx(1.0 / 252));
  CHECK(rank_sum_above({1, 1, 1}, {1, 1, 1}) == 1);
  CHECK(rank_sum_above({1, 2, 3}, {4, 5, 6}) == 1);
  CHECK(rank_sum_above({1, 2, 3, 4, 5}, {kNever, kNever, kNever, kNever, kNever}) == Approx(1.0 / 252));
  CHECK(rank_sum_above({1, kNever}, {kNever, kNever}) == Approx(0.5));  // the one that reached it is in either half
  std::vector<double> many, more;
  for (int i = 0; i < 60; ++i) many.push_back(i), more.push_back(i + 100);
  CHECK(rank_sum_above(more, many) < 1e-10);
  CHECK(rank_sum_above(many, many) == Approx(0.5).margin(0.01));
}

TEST_CASE("the power of a t test is that of the noncentral t", "[report][verdict]") {
  // One-sided at 5 % with an effect of one standard deviation: 0.897 with 10 pairs; 0.9 needs 11 (Cohen 1988).
  CHECK(power_of(1, 1, 10, 0.05) == Approx(0.897).margin(0.001));
  CHECK(pairs_to_find(1, 1, 0.05, 2) == 11);
  CHECK(power_of(0, 1, 7, 0.0125) == Approx(0.0125).margin(1e-4));
  CHECK(pairs_to_find(100, 1, 0.05, 5) == 5);
  CHECK(pairs_to_find(-1, 1, 0.05, 5) == kMostPairs + 1);
  CHECK(pairs_to_find(1e-6, 1, 0.05, 5) == kMostPairs + 1);
  CHECK(pairs_to_find(1, 0, 0.05, 5) == 5);
}

TEST_CASE("looks share the error, and Holm what is left of it", "[report][verdict]") {
  CHECK(look_level(Tested::timing) == Approx(0.05 / 4));
  CHECK(look_level(Tested::figure) == Approx(0.05 / 3));
  const std::vector<Judged> judged = holm({0.03, 0.01, 0.04}, 0.05);
  CHECK(judged[1].shown);
  CHECK(judged[1].level == Approx(0.05 / 3));
  CHECK_FALSE(judged[0].shown);  // 0.03 > 0.05 / 2
  CHECK_FALSE(judged[2].shown);  // below 0.05, but after one that is not shown
  CHECK(holm({}, 0.05).empty());
}

}  // namespace echelon
