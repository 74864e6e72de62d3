// SPDX-License-Identifier: Apache-2.0
// Rounding to bf16, and products of recurrent steps with panels in bf16.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/processor.hpp"
#include "device/onednn/halves.hpp"
#include "device/onednn/onednn.hpp"
#include "device/onednn/step_product.hpp"
#include "tests/support/halves.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace o = onednn;

std::vector<float> floats_of(std::size_t n, const std::string& name) {
  const auto values = test::random_values(n, name);
  return {values.begin(), values.end()};
}

double rounded(float value) { return test::from_half(DType::bf16, test::to_half(DType::bf16, value)); }

struct Sizes {
  std::int64_t rows, inputs, outputs, x_columns;
};

// Returns the index of element (i, o) of w.
std::size_t weight_at(const Sizes& s, bool transposed, std::int64_t i, std::int64_t o) {
  return static_cast<std::size_t>(transposed ? o * s.inputs + i : i * s.outputs + o);
}

// Returns the largest error of an output, relative to the size of the terms that it sums.
double worst(const Sizes& s, bool transposed, const std::vector<float>& x, const std::vector<float>& w,
             const std::vector<float>& y) {
  double most = 0;
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t o = 0; o < s.outputs; ++o) {
      double sum = 0, scale = 1e-30;
      for (std::int64_t i = 0; i < s.inputs; ++i) {
        const double term =
            rounded(x[static_cast<std::size_t>(r * s.x_columns + i)]) * rounded(w[weight_at(s, transposed, i, o)]);
        sum += term, scale += std::fabs(term);
      }
      const double error = std::fabs(sum - static_cast<double>(y[static_cast<std::size_t>(r * s.outputs + o)])) / scale;
      if (!(error <= most)) most = error;  // true for NaN too
    }
  return most;
}

TEST_CASE("bf16 is rounded to nearest, ties to even, NaN stays NaN", "[onednn][halves]") {
  std::vector<float> values = {0.0f, -0.0f, 1.0f, 1.00390625f, 1.01171875f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY};
  const HashRng rng(test::test_seed(), "bits");
  for (std::uint64_t i = 0; i < 100'000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(rng.at(i).key())));
  for (const std::uint32_t nan : {0x7fc00000U, 0x7f800001U, 0xff80ffffU}) values.push_back(std::bit_cast<float>(nan));
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<o::BHalf> halves(values.size()), sums(values.size(), test::to_half(DType::bf16, 1.5f));
  std::vector<float> wide(values.size()), in_place = values;
  o::round_halves(values.data(), halves.data(), n, 2);
  o::widen(halves.data(), wide.data(), n, 2);
  o::round_in_f32(in_place.data(), in_place.data(), n, 2);
  o::add_halves(sums.data(), halves.data(), sums.data(), n, 1);
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      wrong += std::isnan(wide[i]) && std::isnan(in_place[i]) ? 0 : 1;
      continue;
    }
    const std::uint16_t half = test::to_half(DType::bf16, values[i]);
    const float back = test::from_half(DType::bf16, half);
    wrong += halves[i] == half && wide[i] == back && in_place[i] == back ? 0 : 1;
    wrong += sums[i] == test::to_half(DType::bf16, 1.5f + back) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("products of recurrent steps in halves: any size, either order of weights", "[onednn][halves]") {
  const auto device = make_onednn_device({});
  const int threads = GENERATE(1, 2);
  const o::Context context{*device, threads};
  for (const o::Precision& precision : {o::kEmulatedHalves, o::kHalves})
    for (const Sizes& s : {Sizes{1, 1, 1, 1}, Sizes{3, 2, 16, 5}, Sizes{14, 15, 17, 15}, Sizes{15, 161, 33, 161},
                           Sizes{29, 333, 32, 340}, Sizes{20, 320, 100, 320}, Sizes{7, 50, 650, 50}})
      for (const bool transposed : {false, true}) {
        CAPTURE(threads, precision.halves(), s.rows, s.inputs, s.outputs, transposed);
        o::StepProduct product(context, s.rows, s.inputs, s.outputs, transposed, s.x_columns, precision);
        o::StepProduct sharing(context, s.rows, s.inputs, s.outputs, transposed, s.x_columns, precision);
        sharing.share_weights(product);
        const auto x = floats_of(static_cast<std::size_t>(s.rows * s.x_columns), "x");
        // Products of halves are exact in f32; each addition rounds once.
        const double rounding = static_cast<double>(s.inputs + 2) * std::numeric_limits<float>::epsilon() / 2;
        std::vector<float> y(static_cast<std::size_t>(s.rows * s.outputs), NAN), again = y;
        for (std::uint64_t version = 1; version <= 3; ++version) {
          const auto w = floats_of(static_cast<std::size_t>(s.inputs * s.outputs), "w" + std::to_string(version));
          product.run(x.data(), w.data(), version, y.data());
          CHECK(worst(s, transposed, x, w, y) < rounding);
          sharing.run(x.data(), w.data(), version, again.data());
          CHECK(again == y);
        }
      }
}

}  // namespace
}  // namespace echelon
