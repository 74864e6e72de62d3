// SPDX-License-Identifier: Apache-2.0
#include "inference/sampler.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.hpp"

namespace echelon {
namespace {

const std::vector<double> kLogits = {0.3, -1.0, 2.0, 0.9, 1.1, -4.0};

// Returns Pearson's statistic of 50,000 draws against softmax(logits / T) over the tokens that may be drawn.
double chi_square(const SamplerOptions& options, const std::vector<std::size_t>& among) {
  constexpr std::int64_t kDraws = 50000;
  std::vector<double> counts(kLogits.size());
  for (std::int64_t place = 0; place < kDraws; ++place)
    ++counts[static_cast<std::size_t>(next_token(kLogits, options, place))];
  double sum = 0, chi = 0, all = 0;
  for (const std::size_t token : among) sum += std::exp(kLogits[token] / options.temperature);
  for (const std::size_t token : among) {
    const double expected = kDraws * std::exp(kLogits[token] / options.temperature) / sum;
    chi += (counts[token] - expected) * (counts[token] - expected) / expected;
    all += counts[token];
  }
  CHECK(all == kDraws);
  return chi;
}

TEST_CASE("tokens are drawn as often as softmax(logits / temperature) says", "[inference][sampler]") {
  // One seed in a thousand is above 20.5 or 13.8 (5 and 2 degrees of freedom).
  for (const std::uint64_t seed : {1, 2, 3})
    for (const double temperature : {0.5, 1.0, 3.0}) {
      INFO("seed " << seed << ", temperature " << temperature);
      CHECK(chi_square({.temperature = temperature, .seed = seed}, {0, 1, 2, 3, 4, 5}) < 20.5);
      CHECK(chi_square({.temperature = temperature, .top_k = 3, .seed = seed}, {2, 3, 4}) < 13.8);
    }
}

TEST_CASE("temperature 0 takes the likeliest token", "[inference][sampler]") {
  CHECK(next_token(kLogits, {.temperature = 0}, 7) == 2);
  CHECK(next_token(std::vector<double>{1, 3, 3}, {.temperature = 0}, 7) == 1);
  for (std::int64_t place = 0; place < 100; ++place) {
    CHECK(next_token(kLogits, {.top_k = 1}, place) == 2);
    CHECK(next_token(kLogits, {.temperature = 1e-9}, place) == 2);
  }
  const std::vector<double> broken = {0, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_AS(next_token(broken, {}, 0), NumericError);
}

}  // namespace
}  // namespace echelon
