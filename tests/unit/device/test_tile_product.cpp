// SPDX-License-Identifier: Apache-2.0
// Products by tiles at sizes that are no multiples of a tile's, of factors in every memory order: by plain loops on
// every processor, and by the matrix unit where there is one.
#include "device/onednn/tile_product.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "device/onednn/onednn.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace o = onednn;
using Bytes = std::vector<std::byte>;

// A matrix stored by lines, with a few elements between them that no product may touch.
struct Stored {
  o::Lines lines;
  std::int64_t count = 0, length = 0;
  Bytes bytes;

  Stored(std::int64_t lines_there_are, std::int64_t line_length, bool halves, bool in_two_strides)
      : lines{.halves = halves, .step = line_length + 3}, count(lines_there_are), length(line_length) {
    if (in_two_strides) lines.inner = 3, lines.outer = lines.step, lines.step *= (count + 2) / 3;
    bytes.assign(bytes_of((count + 3) * (length + 3)), std::byte{0xFF});  // NaN
  }
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * (lines.halves ? 2 : 4); }
  std::byte* at(std::int64_t line, std::int64_t i) { return bytes.data() + lines.bytes_to(line) + bytes_of(i); }
  void set(std::int64_t line, std::int64_t i, float value) {
    const o::BHalf half = o::rounded(value);
    std::memcpy(at(line, i), lines.halves ? static_cast<const void*>(&half) : &value, bytes_of(1));
  }
  float get(std::int64_t line, std::int64_t i) {
    o::BHalf half = 0;
    float value = 0;
    std::memcpy(lines.halves ? static_cast<void*>(&half) : &value, at(line, i), bytes_of(1));
    return lines.halves ? o::widened(half) : value;
  }
  void fill(const std::string& name) {
    const auto values = test::random_values(static_cast<std::size_t>(count * length), name);
    for (std::int64_t i = 0; i < count * length; ++i)
      set(i / length, i % length, static_cast<float>(values[static_cast<std::size_t>(i)]));
  }
};

struct Sizes {
  std::int64_t m, n, k;
};

// The memory order of the factors and of the result.
struct Order {
  bool a_halves, a_by_depth, b_halves, b_by_depth, c_halves, two_strides;
};

double rounded(float value) { return o::widened(o::rounded(value)); }

void check(Device& device, const Sizes& s, const Order& order, bool real, int threads) {
  Stored a(order.a_by_depth ? s.k : s.m, order.a_by_depth ? s.m : s.k, order.a_halves, order.two_strides);
  Stored b(order.b_by_depth ? s.k : s.n, order.b_by_depth ? s.n : s.k, order.b_halves, order.two_strides);
  const std::vector<double> bias_values = test::random_values(static_cast<std::size_t>(s.n), "bias");
  const std::vector<float> bias(bias_values.begin(), bias_values.end());
  a.fill("a");
  b.fill("b");
  for (const bool weights : {false, true}) {
    o::ScratchPlan plan;
    o::TileProduct product(device,
                           {.a = {a.lines, s.m, s.k, true, order.a_by_depth},
                            .b = {b.lines, s.n, s.k, false, order.b_by_depth},
                            .c = Stored(s.m, s.n, order.c_halves, order.two_strides).lines,
                            .weights = weights,
                            .threads = threads,
                            .real = real},
                           plan);
    Bytes scratch(plan.bytes() + o::ScratchPlan::kAlignment, std::byte{0xFF});
    for (const bool add : {false, true}) {
      Stored c(s.m, s.n, order.c_halves, order.two_strides);
      if (add) c.fill("c");
      Stored before = c;
      const float* given = weights ? bias.data() : nullptr;
      product.run({.a = a.bytes.data(),
                   .b = b.bytes.data(),
                   .c = c.bytes.data(),
                   .scratch = o::ScratchPlan::align(scratch.data()),
                   .add = add,
                   .version = 1,
                   .bias = given});
      double worst = 0;
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = (add ? before.get(i, j) : 0.0) + (given ? bias[static_cast<std::size_t>(j)] : 0.0);
          for (std::int64_t k = 0; k < s.k; ++k)
            sum += rounded(order.a_by_depth ? a.get(k, i) : a.get(i, k)) *
                   rounded(order.b_by_depth ? b.get(k, j) : b.get(j, k));
          // A sum rounded to a half is off by 2^-9 of itself; one in f32 by a rounding per term, of a sum of size 1.
          const double allowed = order.c_halves ? std::fabs(sum) / 256 + 2e-4 : 1.2e-7 * double(s.k) + 1e-6;
          worst = std::max(worst, std::fabs(sum - c.get(i, j)) / allowed);
          c.set(i, j, before.get(i, j));
        }
      CAPTURE(weights, add);
      CHECK(worst <= 1);
      CHECK(c.bytes == before.bytes);  // nothing beside the result may be written
    }
  }
}

}  // namespace

TEST_CASE("products by tiles: every order of the factors, odd sizes", "[onednn][halves][tiles]") {
  const auto device = make_onednn_device({});
  for (const bool real : {false, true}) {
    if (real && !o::multiplies_tiles()) continue;
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{16, 32, 32}, Sizes{20, 33, 31}, Sizes{33, 17, 65}, Sizes{47, 70, 34}})
      for (int bits = 0; bits < 64; ++bits) {
        const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
        CAPTURE(real, s.m, s.n, s.k, bits);
        check(*device, s, {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)}, real, 1);
      }
  }
}

TEST_CASE("products by tiles: a depth that is done in parts", "[onednn][halves][tiles]") {
  const auto device = make_onednn_device({});
  for (const bool real : {false, true}) {
    if (real && !o::multiplies_tiles()) continue;
    for (int bits = 0; bits < 4; ++bits) {
      CAPTURE(real, bits);
      check(*device, {18, 35, 3110}, {true, false, true, true, (bits & 1) != 0, (bits & 2) != 0}, real, 2);
    }
  }
}

TEST_CASE("products by tiles have the same bits on any number of threads", "[onednn][halves][tiles]") {
  const auto device = make_onednn_device({});
  const bool real = o::multiplies_tiles();
  for (const Sizes& s : {Sizes{150, 170, 190}, Sizes{20, 650, 340}}) {
    const auto a = test::random_values(static_cast<std::size_t>(s.m * s.k), "a"),
               b = test::random_values(static_cast<std::size_t>(s.n * s.k), "b");
    const std::vector<float> left(a.begin(), a.end()), right(b.begin(), b.end());
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      o::ScratchPlan plan;
      o::TileProduct product(*device,
                             {.a = {{.step = s.k}, s.m, s.k, true, false},
                              .b = {{.step = s.n}, s.n, s.k, false, true},
                              .c = {.step = s.n},
                              .threads = threads,
                              .real = real},
                             plan);
      Bytes scratch(plan.bytes(), std::byte{0xFF});
      results.emplace_back(static_cast<std::size_t>(s.m * s.n));
      for (int run = 0; run < 2; ++run)  // forwards and backwards
        product.run({.a = left.data(),
                     .b = right.data(),
                     .c = results.back().data(),
                     .scratch = o::ScratchPlan::align(scratch.data())});
    }
    CHECK(results[1] == results[0]);
    CHECK(results[2] == results[0]);
  }
}

}  // namespace echelon
