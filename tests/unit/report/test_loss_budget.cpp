// SPDX-License-Identifier: Apache-2.0
// Budgets have no negative part and add up to the whole, for any baseline.
#include "report/loss_budget.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/random.hpp"

namespace echelon {
namespace {

// Makes a row of 10 timed steps after the first; the arguments are seconds per step.
ScalingRow row_of(int ranks, double compute_s, double exchange_s, double skew_wait_s) {
  ScalingRow row;
  row.attempts = 1;
  row.ranks = ranks;
  row.global_batch = 64;
  row.timed_steps = 10;
  row.time_split_s = {.total_s = 11 * (compute_s + exchange_s),
                      .forward_s = 11 * compute_s / 3,
                      .backward_s = 11 * compute_s * 2 / 3,
                      .exchange_s = 11 * exchange_s};
  row.step_s = {compute_s + exchange_s, compute_s + exchange_s, compute_s + exchange_s};
  row.start_to_first_step_s = compute_s + exchange_s;
  row.skew_wait_s = skew_wait_s;
  row.has_split = true;
  return row;
}

double checked_sum(const LossBudget& budget) {
  double sum = 0;
  for (const BudgetPart& part : kBudgetParts) {
    INFO(part.name);
    CHECK(budget.*part.share >= 0);
    sum += budget.*part.share;
  }
  return sum;
}

}  // namespace

TEST_CASE("a study whose least size is 2 ranks has lost nothing there", "[report][study]") {
  const ScalingRow two = row_of(2, 0.03, 0.02, 0.015);
  const LossBudget budget = loss_budget(two, two);
  CHECK(checked_sum(budget) == Approx(1));
  CHECK(budget.achieved == Approx(1));
  CHECK(budget.exchange == 0);
  CHECK(budget.skew == 0);
}

TEST_CASE("what took less than its share is set off against the losses", "[report][study]") {
  // At twice the rate of one rank, 10 of the step's 16 ms would do; compute takes 2 ms less than half of 20.
  const LossBudget budget = loss_budget(row_of(2, 0.008, 0.008, 0.002), row_of(1, 0.020, 0, kUnknown));
  CHECK(checked_sum(budget) == Approx(1));
  CHECK(budget.achieved == Approx(10.0 / 16));
  CHECK(budget.micro_batch == 0);
  CHECK(budget.exchange == Approx(6.0 / 16 * 6 / 8));
  CHECK(budget.skew == Approx(6.0 / 16 * 2 / 8));
}

TEST_CASE("more than k times the rate of one worker is all achieved", "[report][study]") {
  const LossBudget budget = loss_budget(row_of(2, 0.005, 0.001, 0.001), row_of(1, 0.020, 0, kUnknown));
  CHECK(checked_sum(budget) == Approx(1));
  CHECK(budget.achieved == Approx(1));
}

TEST_CASE("budgets of a thousand pairs sum to the whole", "[report][study]") {
  for (int round = 0; round < 1000; ++round) {
    const std::vector<double> u = test::random_values(8, "budget" + std::to_string(round));
    const auto at = [&](std::size_t i) { return 0.01 * std::abs(u[i]) + 1e-6; };
    const ScalingRow base = row_of(1 + round % 3, at(0), at(1), at(2));
    ScalingRow row = row_of(1 + round % 7, at(3), at(4), at(5));
    row.start_to_first_step_s += at(6);
    row.time_split_s.evaluation_s = at(7);
    if (round % 2 == 0) row.samples_trained = 100 + round;
    CHECK(checked_sum(loss_budget(row, base)) == Approx(1));
  }
}

}  // namespace echelon
