// SPDX-License-Identifier: Apache-2.0
// The oscillation of a loss compared with a plain loop over drawn losses, and cases in which it is unknown.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/hash_rng.hpp"
#include "report/oscillation.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// Computes it by definition, window by window.
double plain(std::vector<double> rows) {
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2));
  double squares = 0;
  int count = 0;
  for (std::size_t i = 25; i + 25 < rows.size(); ++i, ++count) {
    double mean = 0;
    for (std::size_t j = i - 25; j <= i + 25; ++j) mean += rows[j] / 51;
    squares += (rows[i] - mean) * (rows[i] - mean);
  }
  return std::sqrt(squares / count);
}

TEST_CASE("oscillation of the loss: a plain loop, whatever the number of steps", "[report]") {
  for (std::uint64_t seed = test::test_seed(); seed < test::test_seed() + 20; ++seed) {
    const HashRng random(seed, "oscillation");
    const std::size_t steps = 102 + random.below(0, 400);
    std::vector<double> losses;
    for (std::size_t i = 0; i < steps; ++i)
      losses.push_back(1 / std::sqrt(1.0 + static_cast<double>(i)) + random.uniform(i + 1));
    CAPTURE(seed, steps);
    CHECK(loss_oscillation(losses) == Approx(plain(losses)).epsilon(1e-9));
  }
}

TEST_CASE("what is not finite is left out of an oscillation; a steady decay does not oscillate", "[report]") {
  const HashRng random(test::test_seed(), "oscillation");
  std::vector<double> losses, line;
  for (std::size_t i = 0; i < 150; ++i) losses.push_back(random.uniform(i));
  std::vector<double> skipped = losses;
  skipped.insert(skipped.begin() + 4, NAN);
  CHECK(loss_oscillation(skipped) == Approx(plain(losses)).epsilon(1e-9));
  for (int i = 0; i < 300; ++i) line.push_back(3 - 0.01 * i);
  CHECK(loss_oscillation(line) < 1e-12);
  CHECK(std::isnan(loss_oscillation(std::vector<double>(101, 1.0))));
  CHECK(std::isnan(loss_oscillation({})));
}

}  // namespace
}  // namespace echelon
