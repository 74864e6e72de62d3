// SPDX-License-Identifier: Apache-2.0
// Vectorised exp, sigmoid and tanh compared with the library's, over all inputs that a gate may get.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "device/onednn/vector_math.hpp"

namespace echelon::device::onednn {
namespace {

using L = Lanes<8>;
using Math = VectorMath<L>;

// Returns the largest relative error of `fast` over x = -limit .. limit, with all eight lanes of each vector.
template <class Fast, class Exact>
double worst(double limit, Fast fast, Exact exact) {
  double worst = 0;
  for (double x = -limit; x < limit; x += limit / 20000) {
    float in[8], out[8];
    for (int i = 0; i < 8; ++i) in[i] = static_cast<float>(x + i * limit / 170000);
    L::store(out, fast(L::load(in)));
    for (int i = 0; i < 8; ++i) {
      const double wanted = exact(static_cast<double>(in[i]));
      worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - wanted) / std::max(std::fabs(wanted), 1e-37));
    }
  }
  return worst;
}

TEST_CASE("vector exp, sigmoid and tanh are exact to 5e-7", "[device][onednn]") {
  for (double limit : {1e-3, 0.7, 10.0, 87.0}) {
    CAPTURE(limit);
    CHECK(worst(limit, Math::exp, [](double x) { return std::exp(x); }) < 3e-7);
    CHECK(worst(limit, Math::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }) < 3e-7);
    CHECK(worst(limit, Math::tanh, [](double x) { return std::tanh(x); }) < 5e-7);
  }
}

TEST_CASE("vector functions at the ends: no overflow, NaN stays NaN", "[device][onednn]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float in[8] = {nan, inf, -inf, 1e30f, -1e30f, 0.0f, 100.0f, -100.0f};
  float out[8];
  L::store(out, Math::tanh(L::load(in)));
  CHECK(std::isnan(out[0]));
  for (int i : {1, 3, 6}) CHECK(out[i] == 1.0f);
  for (int i : {2, 4, 7}) CHECK(out[i] == -1.0f);
  CHECK(out[5] == 0.0f);
  L::store(out, Math::sigmoid(L::load(in)));
  CHECK(std::isnan(out[0]));
  for (int i : {1, 3, 6}) CHECK(out[i] == 1.0f);
  for (int i : {2, 4, 7}) CHECK(out[i] < 1e-37f);
  CHECK(out[5] == 0.5f);
  L::store(out, Math::exp(L::load(in)));
  CHECK(std::isnan(out[0]));
  CHECK(std::isfinite(out[1]));
  CHECK(out[2] < 1e-37f);
}

}  // namespace
}  // namespace echelon::device::onednn
