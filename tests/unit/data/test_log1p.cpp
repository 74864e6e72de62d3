// SPDX-License-Identifier: Apache-2.0
// The fast logarithm of samples against that of the library, in double.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "data/log1p.hpp"
#include "tests/support/random.hpp"

namespace echelon {

TEST_CASE("ln(1 + x) of many floats is within two units in the last place", "[data][foreign]") {
  std::mt19937_64 draws(test::test_seed());
  std::uniform_real_distribution<float> around(-1, 1), exponent(-40, 60);
  std::uniform_int_distribution<int> counts(0, 32767);
  std::vector<float> x = {0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < 10007; ++i) {
    const float near_minus_one = std::nextafter(-1.0F, 0.0F);
    x.push_back(std::max(near_minus_one, around(draws)));
    x.push_back(std::exp2(exponent(draws)));
    x.push_back(static_cast<float>(counts(draws)));
  }
  std::vector<float> y = x;
  data::take_log1p(y.data(), std::ssize(y));
  CHECK(y[0] == 0);
  CHECK(y[1] == x[1]);
  CHECK(std::isnan(y[2]));
  double most = 0;
  for (std::size_t i = 3; i < x.size(); ++i) {
    const double exact = std::log1p(static_cast<double>(x[i]));
    const auto rounded = static_cast<float>(std::fabs(exact));
    const double unit = static_cast<double>(std::nextafter(rounded, HUGE_VALF)) - static_cast<double>(rounded);
    most = std::max(most, std::fabs(static_cast<double>(y[i]) - exact) / unit);
  }
  CHECK(most <= 2);
}

}  // namespace echelon
