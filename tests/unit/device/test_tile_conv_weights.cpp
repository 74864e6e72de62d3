// SPDX-License-Identifier: Apache-2.0
// Gradients of a convolution's weights by tiles, beside plain sums in double: by plain loops on every processor, and by
// the matrix unit where there is one. Scratch memory begins as NaN.
#include "device/onednn/tile_conv_weights.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace o = onednn;

std::vector<o::BHalf> halves(std::int64_t n, const std::string& name) {
  std::vector<o::BHalf> values;
  for (const double value : test::random_values(static_cast<std::size_t>(n), name))
    values.push_back(o::rounded(static_cast<float>(value)));
  return values;
}

struct Images {
  const std::vector<o::BHalf>& values;
  std::int64_t height, width, channels;
  double at(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) const {
    if (h < 0 || h >= height || w < 0 || w >= width) return 0;
    return o::widened(values[static_cast<std::size_t>(((n * height + h) * width + w) * channels + c)]);
  }
};

// The sum of `term(n, p, q)` over all pixels of y, and that of its absolute values.
template <class Term>
std::pair<double, double> over_pixels(const ConvDims& d, const Term& term) {
  double sum = 0, size = 0;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t p = 0; p < d.P(); ++p)
      for (std::int64_t q = 0; q < d.Q(); ++q) {
        sum += term(n, p, q);
        size += std::abs(term(n, p, q));
      }
  return {sum, size};
}

void check(const ConvDims& d, bool real, int threads, bool add) {
  const auto x = halves(d.N * d.C * d.H * d.W, "x"), dy = halves(d.N * d.K * d.P() * d.Q(), "dy");
  o::ScratchPlan plan;
  const o::TileConvWeights gradients(d, threads, real, plan);
  std::vector<std::byte> scratch(plan.bytes(), std::byte{0xFF});
  std::vector<float> dw(static_cast<std::size_t>(d.K * d.C * d.R * d.S), 0.5f), db(static_cast<std::size_t>(d.K), 0.5f);
  gradients.run(x.data(), dy.data(), {dw.data(), d.bias ? db.data() : nullptr, add, add},
                o::ScratchPlan::align(scratch.data()));

  const Images image{x, d.H, d.W, d.C}, slope{dy, d.P(), d.Q(), d.K};
  const double before = add ? 0.5 : 0.0;
  // Products of bf16 are exact in f32; each of the n additions errs by half an ulp of a partial sum.
  const auto agree = [&](float value, std::pair<double, double> exact) {
    const double additions = static_cast<double>(d.N * d.P() * d.Q() + 1);
    return std::abs(value - before - exact.first) <= additions * 0x1p-24 * (exact.second + 1);
  };
  bool agrees = true;
  for (std::int64_t k = 0; k < d.K; ++k) {
    for (std::int64_t i = 0; i < d.C * d.R * d.S; ++i) {
      const std::int64_t c = i / (d.R * d.S), r = i / d.S % d.R, s = i % d.S;
      agrees = agrees && agree(dw[static_cast<std::size_t>(k * d.C * d.R * d.S + i)],
                               over_pixels(d, [&](std::int64_t n, std::int64_t p, std::int64_t q) {
                                 return slope.at(n, p, q, k) * image.at(n, p * d.stride_h - d.pad_h + r * d.dil_h,
                                                                        q * d.stride_w - d.pad_w + s, c);
                               }));
    }
    if (d.bias)
      agrees =
          agrees &&
          agree(db[static_cast<std::size_t>(k)],
                over_pixels(d, [&](std::int64_t n, std::int64_t p, std::int64_t q) { return slope.at(n, p, q, k); }));
  }
  CHECK(agrees);
}

TEST_CASE("gradients of convolution weights by tiles", "[device][conv]") {
  const ConvDims cases[] = {
      {.N = 3, .C = 5, .H = 7, .W = 9, .K = 3, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 2, .C = 16, .H = 8, .W = 8, .K = 34, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .bias = false},
      {.N = 2, .C = 3, .H = 20, .W = 37, .K = 17, .R = 7, .S = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3},
      {.N = 5, .C = 33, .H = 5, .W = 4, .K = 8, .R = 1, .S = 1, .stride_h = 2, .stride_w = 3, .bias = false},
      {.N = 1, .C = 2, .H = 60, .W = 40, .K = 2, .R = 2, .S = 4, .stride_h = 1, .stride_w = 2, .pad_h = 1, .pad_w = 2},
      {.N = 2, .C = 4, .H = 13, .W = 6, .K = 5, .R = 3, .S = 2, .stride_h = 3, .dil_h = 2},
      {.N = 40, .C = 1, .H = 3, .W = 3, .K = 1, .R = 3, .S = 3, .stride_h = 4, .stride_w = 4, .pad_h = 2, .pad_w = 2},
      {.N = 2, .C = 3, .H = 2, .W = 1, .K = 4, .R = 5, .S = 5, .pad_h = 2, .pad_w = 2},
      {.N = 1, .C = 2, .H = 3, .W = 70, .K = 33, .R = 1, .S = 3, .pad_w = 1},
  };
  for (const bool real : {false, true}) {
    if (real && !o::multiplies_tiles()) continue;
    for (const ConvDims& d : cases)
      for (const int threads : {1, 3}) {
        CAPTURE(real, threads, d.N, d.C, d.H, d.W, d.K, d.R, d.S);
        check(d, real, threads, threads == 3);
      }
  }
}

}  // namespace
}  // namespace echelon
