// SPDX-License-Identifier: Apache-2.0
#include "run/learning.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr double kTen = 2.302585;  // ln 10

// Makes losses that fall from `from` to `to` by equal factors, with noise.
std::vector<double> losses(double from, double to, int steps) {
  std::vector<double> noise = test::random_values(static_cast<std::size_t>(steps), "losses");
  for (int i = 0; i < steps; ++i) {
    double& loss = noise[static_cast<std::size_t>(i)];
    loss = from * std::pow(to / from, i / (steps - 1.0)) * (1 + 0.01 * std::tanh(loss));
  }
  return noise;
}

std::vector<double> then(std::vector<double> first, const std::vector<double>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace

TEST_CASE("a loss that stands where it began is told", "[run][learning]") {
  CHECK_THAT(nothing_learned({.losses = losses(2.6, 2.6, 200), .first = 2.6}), Contains("nothing was learned"));
  // A net's first loss is often above that of guessing, to which a dead net returns.
  CHECK_THAT(nothing_learned({.losses = losses(2.8, kTen, 200), .first = 2.8, .chance = kTen}),
             Contains("guessing among the classes gives 2.303"));
  CHECK_THAT(
      nothing_learned({.losses = then(losses(2.4, 766, 60), losses(kTen, kTen, 100)), .first = 2.4, .chance = kTen}),
      Contains("had climbed to") && Contains("of this attempt"));
  CHECK_THAT(
      nothing_learned({.losses = then(losses(2.4, 0.3, 60), losses(kTen, kTen, 100)), .first = 2.4, .chance = kTen}),
      Contains("had fallen to 0."));
}

TEST_CASE("a loss that falls is not, however slowly it begins", "[run][learning]") {
  CHECK(nothing_learned({.losses = losses(2.6, 0.4, 200), .first = 2.6, .chance = kTen}).empty());
  CHECK(nothing_learned({.losses = losses(2.3, 2.1, 100), .first = 2.3, .chance = kTen}).empty());
  CHECK(nothing_learned({.losses = losses(2.3, 2.3, 39), .first = 2.3}).empty());   // too few to tell
  CHECK(nothing_learned({.losses = losses(0.5, 0.5, 100), .first = 2.3}).empty());  // a resumed run that learns
  CHECK(nothing_learned({}).empty());
}

}  // namespace echelon
