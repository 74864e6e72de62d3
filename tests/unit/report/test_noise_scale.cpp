// SPDX-License-Identifier: Apache-2.0
// The gradient noise scale of drawn gradients with a known truth, and cases in which it is unknown.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/hash_rng.hpp"
#include "report/noise_scale.hpp"
#include "tests/support/random.hpp"

namespace echelon {

TEST_CASE("the gradient noise scale is that of the gradients, however many samples replicas have", "[report]") {
  const HashRng random(test::test_seed(), "noise");
  constexpr int kDims = 50, kSteps = 4000;
  constexpr double kSignal = 0.3, kNoise = 1.5;  // per element: mean and standard deviation of a sample's gradient
  const double truth = (kNoise * kNoise) / (kSignal * kSignal);
  for (const std::vector<double>& samples : {std::vector<double>{2, 2, 2, 2}, {8, 8}, {1, 3, 12}}) {
    NoiseSums sums;
    std::uint64_t draw = 0;
    double all = 0;
    for (const double n : samples) all += n;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<double> mean(kDims);
      for (const double n : samples) {
        double own = 0;
        for (double& element : mean) {
          const double value = kSignal + kNoise / std::sqrt(n) * hash_normal(random, draw++);
          own += value * value;
          element += n / all * value;
        }
        const auto k = static_cast<double>(samples.size());
        sums.own += own / k, sums.own_inverse += 1 / n / k;
      }
      for (const double element : mean) sums.mean += element * element;
      sums.mean_inverse += 1 / all;
      sums.steps += 1;
    }
    CAPTURE(samples.size());
    // With 200,000 draws per replica, S is within 0.5 % and |G|^2 (whose noise is S / 8 or S / 16 a step) within 2 %.
    CHECK(noise_scale(sums) == Approx(truth).epsilon(0.05));
  }
}

TEST_CASE("one replica, or gradients without a mean, have no noise scale", "[report]") {
  CHECK(std::isnan(noise_scale({})));
  CHECK(std::isnan(noise_scale({.steps = 1, .own = 2, .own_inverse = 0.5, .mean = 2, .mean_inverse = 0.5})));
  CHECK(std::isnan(noise_scale({.steps = 1, .own = 4, .own_inverse = 0.5, .mean = 1, .mean_inverse = 0.25})));
}

}  // namespace echelon
