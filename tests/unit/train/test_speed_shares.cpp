// SPDX-License-Identifier: Apache-2.0
// Shares of a step by measured speed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/hash_rng.hpp"
#include "data/sample_plan.hpp"
#include "tests/support/random.hpp"
#include "train/speed_shares.hpp"

namespace echelon {
namespace {

using Batches = std::vector<std::int64_t>;

std::int64_t sum_of(const Batches& batches) { return std::accumulate(batches.begin(), batches.end(), std::int64_t{0}); }

double slowest_s(const Batches& batches, const std::vector<double>& rates) {
  double slowest = 0;
  for (std::size_t r = 0; r < batches.size(); ++r)
    slowest = std::max(slowest, static_cast<double>(batches[r]) / rates[r]);
  return slowest;
}

}  // namespace

TEST_CASE("a replica at half speed gets half as many samples as the others", "[train][balance]") {
  CHECK(shares_by_speed({16, 16, 16, 16}, {1, 2, 1, 1}, 1, 32) == Batches{19, 9, 18, 18});
  CHECK(shares_by_speed({16, 16}, {1, 2}, 1, 32) == Batches{22, 10});
  CHECK(shares_by_speed({16, 16}, {1, 2}, 4, 32) == Batches{24, 8});
  CHECK(shares_by_speed({16, 16}, {1, 1.04}, 1, 32) == Batches{16, 16});  // too small a gain
  CHECK(shares_by_speed({16, 16}, {1, 1000}, 1, 32) == Batches{31, 1});
  CHECK(shares_by_speed({16, 16}, {1, 1000}, 1, 24) == Batches{24, 8});
}

TEST_CASE("shares by speed have the same sum, keep to their limits, and are the best there are", "[train][balance]") {
  const HashRng random(test::test_seed(), "speeds");
  for (std::uint64_t i = 0; i < 200; ++i) {
    const HashRng of = random.at(i);
    const std::size_t k = 2 + of.below(0, 6);
    const auto unit = static_cast<std::int64_t>(1 + of.below(1, 3));
    const auto even = unit * static_cast<std::int64_t>(4 + of.below(2, 20));
    const Batches before(k, even);
    std::vector<double> rates, seconds;
    for (std::size_t r = 0; r < k; ++r) {
      rates.push_back(0.3 + of.uniform(10 + r));
      seconds.push_back(static_cast<double>(even) / rates[r]);
    }
    const Batches after = shares_by_speed(before, seconds, unit, 2 * even);
    CAPTURE(i, before, after, rates, unit);
    REQUIRE(sum_of(after) == sum_of(before));
    for (const std::int64_t batch : after) CHECK((batch % unit == 0 && batch >= unit && batch <= 2 * even));
    if (after == before) continue;
    CHECK(slowest_s(after, rates) < (1 - kLeastGain) * slowest_s(before, rates) + 1e-12);
    // Moving a unit from one replica to another must not make the step shorter.
    for (std::size_t from = 0; from < k; ++from)
      for (std::size_t to = 0; to < k; ++to) {
        if (from == to || after[from] == unit || after[to] + unit > 2 * even) continue;
        Batches moved = after;
        moved[from] -= unit, moved[to] += unit;
        CHECK(slowest_s(moved, rates) >= slowest_s(after, rates) - 1e-12);
      }
  }
}

TEST_CASE("a step has the same samples in the same order, however it is divided", "[train][balance][data]") {
  SamplePlanRequest request;
  request.file_samples = {13, 20, 9};
  request.file_chunk_rows = {4, 7, 9};
  request.batch = {5, 5, 5};
  request.sharding = Sharding::record;
  for (const Ragged ragged : {Ragged::wrap, Ragged::zero_weight}) {
    request.ragged = ragged;
    const SamplePlan even(request);
    const SamplePlan other = even.with_batches({9, 2, 4});
    CHECK(other.row_of(2) == 11);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t step = 0; step < even.steps_in(epoch); ++step) {
        const auto same = [](const SampleSlot& a, const SampleSlot& b) { return a.id == b.id && a.counts == b.counts; };
        const auto a = even.all_ids(epoch, step), b = other.all_ids(epoch, step);
        CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end(), same));
        CHECK(other.ids(epoch, step, 0).size() == 9);
        CHECK(even.weight(epoch, step) == other.weight(epoch, step));
      }
  }
}

}  // namespace echelon
