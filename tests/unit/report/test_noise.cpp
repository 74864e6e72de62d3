// SPDX-License-Identifier: Apache-2.0
// The test behind `echelon compare`: known distributions, known autocorrelation, and its rate of errors.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "report/compare/noise.hpp"
#include "report/compare/student.hpp"
#include "tests/unit/report/noisy_rates.hpp"

namespace echelon::test {

TEST_CASE("Student's t has the values of the tables", "[report][compare]") {
  CHECK(student_below(0, 3) == Approx(0.5));
  CHECK(student_below(1, 1) == Approx(0.75));  // Cauchy: 1/2 + atan(t) / pi
  CHECK(student_below(-6.313751515, 1) == Approx(0.05));
  CHECK(student_below(2.228138852, 10) == Approx(0.975));
  CHECK(student_below(3.169272673, 10) == Approx(0.995));
  CHECK(student_below(1.959963985, 1e9) == Approx(0.975));
  CHECK(student_below(1.984, 100) == Approx(0.9750).margin(1e-4));
  CHECK(student_quantile(0.995, 4) == Approx(4.604094871));
  CHECK(student_quantile(0.01, 2) == Approx(-6.964556734));
  CHECK(student_quantile(0.3, 7.5) == Approx(-student_quantile(0.7, 7.5)));
}

TEST_CASE("blocks grow with autocorrelation and are short for white noise", "[report][compare]") {
  const auto length = [](double memory) { return block_length(noisy_rates({.memory = memory, .count = 4000}, 3)); };
  CHECK(length(0) < 6);
  // For AR(1) of correlation c: G / g(0) = 2 c / (1 - c^2); (n times its square)^(1/3) (Politis, White 2004).
  CHECK(length(0.7) == Approx(std::cbrt(std::pow(2 * 0.7 / (1 - 0.49), 2) * 4000)).epsilon(0.35));
  CHECK(length(0.95) > 2 * length(0.7));
  CHECK(block_length(std::vector<double>(50, 3.0)) == 1);
}

TEST_CASE("the bootstrap's standard error is that of a correlated series, not of independent steps",
          "[report][compare]") {
  // Over many series, the spread of the estimates must equal the spread that each claims.
  for (const RateOf what : {RateOf::median_step, RateOf::all_steps}) {
    double sum = 0, squares = 0, claimed = 0;
    constexpr int kSeries = 150;
    for (int i = 0; i < kSeries; ++i) {
      const Estimate one = log_rate(noisy_rates({}, 100 + static_cast<std::uint64_t>(i)), what);
      sum += one.value, squares += one.value * one.value, claimed += one.variance;
    }
    const double variance = (squares - sum * sum / kSeries) / (kSeries - 1);
    CHECK(claimed / kSeries / variance == Approx(1).margin(0.35));
    CHECK(variance > 3 * 0.05 * 0.05 / 300);  // the variance of independent steps
  }
}

TEST_CASE("equal series differ by chance as often as the significance says", "[report][compare]") {
  int alarms = 0;
  constexpr int kPairs = 300;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const Estimate base = log_rate(noisy_rates({.stalls = 0.01}, 2 * i), RateOf::median_step);
    const Estimate fresh = log_rate(noisy_rates({.stalls = 0.01}, 2 * i + 1), RateOf::median_step);
    alarms += welch_test(base, fresh, 0.01).lower_p < 0.05;
  }
  CHECK(alarms > 0.02 * kPairs);
  CHECK(alarms < 0.10 * kPairs);
}

TEST_CASE("attempts that differ among themselves widen the interval, those of the other side too",
          "[report][compare]") {
  const std::vector<Estimate> apart = {{1.0, 1e-6, 50}, {1.2, 1e-6, 50}, {1.1, 1e-6, 50}}, single = {{1.0, 1e-6, 50}};
  const Estimate side = combine_attempts(apart, single);
  CHECK(side.value == Approx(1.1));
  CHECK(side.variance == Approx(0.01 / 3));
  CHECK(side.freedom == 2);
  CHECK(combine_attempts(single, apart).variance == Approx(0.01));
  CHECK(combine_attempts(single, apart).freedom == 2);
  CHECK(combine_attempts(single, single).variance == Approx(1e-6));
  // Attempts that happen to be equal must not hide the noise of their steps.
  CHECK(combine_attempts({{1, 0.04, 20}, {1, 0.04, 20}}, {}).variance == Approx(0.02));
}

TEST_CASE("Welch's test: the worked example of unequal variances", "[report][compare]") {
  // 15 values have mean 20.82, 10 have 23.71; s^2 is 7.75 and 0.96: t = -3.726, about 18.7 degrees of freedom.
  const Shift shift = welch_test({20.82, 7.75 / 15, 14}, {23.71, 0.96 / 10, 9}, 0.05);
  const double error = std::sqrt(7.75 / 15 + 0.96 / 10),
               freedom =
                   std::pow(7.75 / 15 + 0.96 / 10, 2) / (std::pow(7.75 / 15, 2) / 14 + std::pow(0.96 / 10, 2) / 9);
  CHECK(shift.higher_p == Approx(student_below(-2.89 / error, freedom)));
  CHECK(shift.low == Approx(2.89 - student_quantile(0.975, freedom) * error));
  CHECK(shift.high == Approx(2.89 + student_quantile(0.975, freedom) * error));
  const Shift exact = welch_test({2, 0, 0}, {1, 0, 0}, 0.01);
  CHECK(exact.lower_p == 0);
  CHECK(exact.higher_p == 1);
}

TEST_CASE("with as many attempts as are called needed, a test finds the change in 9 of 10", "[report][compare]") {
  CHECK(attempts_to_find(0.05, 1e-6, 0.01) == 2);
  CHECK(attempts_to_find(0.05, 0.02, 0.01) == Approx(std::ceil(std::pow(2.32635 + 1.28155, 2) * 0.02 / 0.0025)));
  constexpr double kShift = 0.05, kDeviation = 0.09, kTrials = 2000;
  const double needed = attempts_to_find(kShift, 2 * kDeviation * kDeviation, 0.01);
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, kDeviation);
  const auto side = [&](double value) {
    std::vector<Estimate> attempts;
    for (int i = 0; i < static_cast<int>(needed); ++i) attempts.push_back({value + noise(random), 0, 1});
    return combine_attempts(attempts, {});
  };
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial)
    found += welch_test(side(0), side(-kShift), 0.01).lower_p < 0.01 ? 1 : 0;
  CHECK(found > 0.86 * kTrials);
  CHECK(found < 0.93 * kTrials);
}

}  // namespace echelon::test
