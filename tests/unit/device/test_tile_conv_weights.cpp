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
  SpatialExtents extents;
  std::int64_t channels;
  double at(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w, std::int64_t c) const {
    if (d < 0 || d >= extents.d || h < 0 || h >= extents.h || w < 0 || w >= extents.w) return 0;
    const std::int64_t cell = ((n * extents.d + d) * extents.h + h) * extents.w + w;
    return o::widened(values[static_cast<std::size_t>(cell * channels + c)]);
  }
};

// The sum of `term(n, o, p, q)` over all pixels of y, and that of its absolute values.
template <class Term>
std::pair<double, double> over_pixels(const ConvDims& d, const Term& term) {
  double sum = 0, size = 0;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t o = 0; o < d.out().d; ++o)
      for (std::int64_t p = 0; p < d.P(); ++p)
        for (std::int64_t q = 0; q < d.Q(); ++q) {
          sum += term(n, o, p, q);
          size += std::abs(term(n, o, p, q));
        }
  return {sum, size};
}

void check(const ConvDims& d, bool real, int threads, bool add) {
  const std::int64_t cells = d.out().cells();
  const auto x = halves(d.N * d.C * d.in.cells(), "x"), dy = halves(d.N * d.K * cells, "dy");
  o::ScratchPlan plan;
  const o::TileConvWeights gradients(d, threads, real, plan);
  std::vector<std::byte> scratch(plan.bytes(), std::byte{0xFF});
  std::vector<float> dw(static_cast<std::size_t>(d.weights()), 0.5f), db(static_cast<std::size_t>(d.K), 0.5f);
  gradients.run(x.data(), dy.data(), {dw.data(), d.bias ? db.data() : nullptr, add, add},
                o::ScratchPlan::align(scratch.data()));

  const Images image{x, d.in, d.C}, slope{dy, d.out(), d.K};
  const double before = add ? 0.5 : 0.0;
  // Products of bf16 are exact in f32; each of the n additions errs by half an ulp of a partial sum.
  const auto agree = [&](float value, std::pair<double, double> exact) {
    const auto additions = static_cast<double>(d.N * cells + 1);
    return std::abs(value - before - exact.first) <= additions * 0x1p-24 * (exact.second + 1);
  };
  bool agrees = true;
  for (std::int64_t i = 0; i < d.weights(); ++i) {
    const std::int64_t s = i % d.kernel.w, r = i / d.kernel.w % d.kernel.h;
    const std::int64_t t = i / (d.kernel.w * d.kernel.h) % d.kernel.d;
    const std::int64_t c = i / (d.kernel.w * d.kernel.h * d.kernel.d) % d.C, k = i / (d.weights() / d.K);
    agrees = agrees && agree(dw[static_cast<std::size_t>(i)],
                             over_pixels(d, [&](std::int64_t n, std::int64_t o, std::int64_t p, std::int64_t q) {
                               return slope.at(n, o, p, q, k) * image.at(n, o * d.stride.d - d.pad.d + t * d.dil.d,
                                                                         p * d.stride.h - d.pad.h + r * d.dil.h,
                                                                         q * d.stride.w - d.pad.w + s, c);
                             }));
  }
  for (std::int64_t k = 0; d.bias && k < d.K; ++k)
    agrees = agrees && agree(db[static_cast<std::size_t>(k)],
                             over_pixels(d, [&](std::int64_t n, std::int64_t o, std::int64_t p, std::int64_t q) {
                               return slope.at(n, o, p, q, k);
                             }));
  CHECK(agrees);
}

TEST_CASE("gradients of convolution weights by tiles", "[device][conv]") {
  const ConvDims cases[] = {
      {.N = 3, .C = 5, .in = {7, 9}, .K = 3, .kernel = {3, 3}, .pad = {1, 1}},
      {.N = 2, .C = 16, .in = {8, 8}, .K = 34, .kernel = {3, 3}, .pad = {1, 1}, .bias = false},
      {.N = 2, .C = 3, .in = {20, 37}, .K = 17, .kernel = {7, 7}, .stride = {2, 2}, .pad = {3, 3}},
      {.N = 5, .C = 33, .in = {5, 4}, .K = 8, .kernel = {1, 1}, .stride = {2, 3}, .bias = false},
      {.N = 1, .C = 2, .in = {60, 40}, .K = 2, .kernel = {2, 4}, .stride = {1, 2}, .pad = {1, 2}},
      {.N = 2, .C = 4, .in = {13, 6}, .K = 5, .kernel = {3, 2}, .stride = {3, 1}, .dil = {2, 1}},
      {.N = 40, .C = 1, .in = {3, 3}, .K = 1, .kernel = {3, 3}, .stride = {4, 4}, .pad = {2, 2}},
      {.N = 2, .C = 3, .in = {2, 1}, .K = 4, .kernel = {5, 5}, .pad = {2, 2}},
      {.N = 1, .C = 2, .in = {3, 70}, .K = 33, .kernel = {1, 3}, .pad = {0, 1}},
      {.N = 2, .C = 3, .in = {4, 5, 6}, .K = 7, .kernel = {3, 3, 3}, .pad = {1, 1, 1}},
      {.N = 1, .C = 17, .in = {9, 33, 34}, .K = 2, .kernel = {3, 3, 3}, .pad = {1, 1, 1}, .bias = false},
      {.N = 3, .C = 2, .in = {7, 3, 4}, .K = 33, .kernel = {3, 1, 2}, .stride = {2, 1, 2}, .pad = {2, 0, 1}},
      {.N = 2, .C = 4, .in = {6, 5, 5}, .K = 3, .kernel = {2, 2, 1}, .stride = {1, 3, 1}, .dil = {3, 2, 1}},
  };
  for (const bool real : {false, true}) {
    if (real && !o::multiplies_tiles()) continue;
    for (const ConvDims& d : cases)
      for (const int threads : {1, 3}) {
        CAPTURE(real, threads, d.N, d.C, d.in.d, d.in.h, d.in.w, d.K, d.kernel.h, d.kernel.w);
        check(d, real, threads, threads == 3);
      }
  }
}

}  // namespace
}  // namespace echelon
