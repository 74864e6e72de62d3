// SPDX-License-Identifier: Apache-2.0
// Made-up rates of steps with the noise of real machines.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::test {

struct Noise {
  double level = 1000;  // samples/s
  double steps = 0.05;  // relative standard deviation between steps
  double memory = 0.7;  // autocorrelation at lag 1 (AR(1))
  double attempts = 0;  // relative standard deviation between attempts
  double stalls = 0;    // share of steps that take five times as long
  std::size_t count = 300;
};

inline std::vector<double> noisy_rates(const Noise& noise, std::uint64_t seed) {
  const HashRng rng(seed, "rates");
  const auto normal = [&](std::uint64_t i) {
    return std::sqrt(-2 * std::log1p(-rng.at(0).uniform(i))) * std::cos(2 * M_PI * rng.at(1).uniform(i));
  };
  std::vector<double> rates;
  const double attempt = noise.attempts * normal(1 << 20);
  double state = normal(1 << 21);
  for (std::size_t i = 0; i < noise.count; ++i) {
    state = noise.memory * state + std::sqrt(1 - noise.memory * noise.memory) * normal(i);
    const double stall = rng.at(2).uniform(i) < noise.stalls ? 0.2 : 1;
    rates.push_back(noise.level * stall * std::exp(attempt + noise.steps * state));
  }
  return rates;
}

}  // namespace echelon::test
