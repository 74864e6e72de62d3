// SPDX-License-Identifier: Apache-2.0
// The slowest of k, compared with draws and with known order statistics.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/hash_rng.hpp"
#include "planner/variation.hpp"

using namespace echelon;

namespace {

// Returns the mean of the largest of k factors over many draws.
double drawn_largest(const Variation& variation, int k, int times) {
  const HashRng random(7, "largest");
  double sum = 0;
  for (int t = 0; t < times; ++t) {
    double largest = 0;
    for (int r = 0; r < k; ++r) {
      const double u = random.at(static_cast<std::uint64_t>(t)).uniform(static_cast<std::uint64_t>(r));
      largest = std::max(largest, variation.quantile(std::clamp(u, 1e-12, 1 - 1e-12)));
    }
    sum += largest;
  }
  return sum / times;
}

}  // namespace

TEST_CASE("a normal's quantiles", "[planner]") {
  CHECK(normal_quantile(0.5) == Approx(0).margin(1e-12));
  CHECK(normal_quantile(0.975) == Approx(1.959963985));
  CHECK(normal_quantile(0.001) == Approx(-3.090232306));
  CHECK(normal_quantile(1 - 1e-7) == Approx(5.199337582));
}

TEST_CASE("the slowest of k replicas is that of draws", "[planner]") {
  for (const double jitter : {0.02, 0.2})
    for (const int k : {2, 8, 100}) {
      const Variation variation = Variation::lognormal(jitter, 0);
      CHECK(variation.largest_of(k) == Approx(drawn_largest(variation, k, 4000)).epsilon(0.01 * (1 + jitter)));
    }
  // For a small sigma: 1 + sigma / sqrt(pi) of two, 1 + 1.03 sigma of four, 3.24 of 1000 (tables of Harter 1961).
  const Variation small = Variation::lognormal(0.001, 0);
  CHECK((small.largest_of(2) - 1) / 0.001 == Approx(0.5642).epsilon(0.02));
  CHECK((small.largest_of(4) - 1) / 0.001 == Approx(1.0294).epsilon(0.02));
  CHECK((small.largest_of(1000) - 1) / 0.001 == Approx(3.2414).epsilon(0.02));
  CHECK(small.largest_of(1) == 1);
  CHECK(Variation().largest_of(10000) == 1);
}

TEST_CASE("jitter averages out over steps, spread does not", "[planner]") {
  CHECK(Variation::lognormal(0.1, 0).largest_of(8, 100) - 1 ==
        Approx((Variation::lognormal(0.01, 0).largest_of(8) - 1)).epsilon(1e-6));
  CHECK(Variation::lognormal(0, 0.1).largest_of(8, 100) == Variation::lognormal(0, 0.1).largest_of(8));
}

TEST_CASE("a measured step keeps its distribution", "[planner]") {
  std::vector<double> seconds;
  for (int i = 0; i < 400; ++i) seconds.push_back(0.2 * std::exp(0.1 * normal_quantile((i + 0.5) / 400)));
  const Variation measured = Variation::measured(seconds), true_one = Variation::lognormal(0.1, 0);
  CHECK(measured.jitter() == Approx(0.1).epsilon(0.02));
  for (const int k : {2, 8, 64}) CHECK(measured.largest_of(k) == Approx(true_one.largest_of(k)).epsilon(0.01));
  CHECK(measured.largest_of(2000) > measured.largest_of(400));  // beyond the measured range
  CHECK(measured.largest_of(2000) == Approx(true_one.largest_of(2000)).epsilon(0.05));
  CHECK(measured.in_place(1, 9) < 1);
  CHECK(measured.in_place(9, 9) == Approx(true_one.in_place(9, 9)).epsilon(0.01));
  CHECK(!Variation::measured({1, 2, 3}).varies());
  // One step in a hundred takes three times as long: one rank seldom sees it, 500 ranks nearly always.
  std::vector<double> hiccups(200, 1.0);
  hiccups[10] = hiccups[150] = 3;
  CHECK(Variation::measured(hiccups).largest_of(500) > 2.5);
}
