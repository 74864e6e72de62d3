// SPDX-License-Identifier: Apache-2.0
// The lossless codec returns any bits, whatever kinds of blocks they need.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "comm/codec/codec.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

template <class T>
using Draw = std::function<T(std::size_t i, double value, std::int64_t integer)>;

template <class T>
struct Pattern {
  const char* name;
  Draw<T> draw;      // makes the i-th value from a number in (-1, 1) and an integer of 32 bits
  double most_part;  // largest share of the values' bytes that a long message may take
};

float word(std::int64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

std::vector<Pattern<float>> patterns(float) {
  return {{"zeros", [](auto, auto, auto) { return 0.0f; }, 0.005},
          {"minus zeros", [](auto, auto, auto) { return -0.0f; }, 0.89},
          {"near each other", [](auto, double v, auto) { return static_cast<float>(1e-3 * v); }, 0.89},
          {"a third zeros", [](auto i, double v, auto) { return i % 3 == 0 ? 0 : static_cast<float>(v); }, 0.63},
          {"nine zeros a block", [](auto i, double v, auto) { return i % 256 < 9 ? 0 : static_cast<float>(v); }, 0.89},
          {"ten zeros a block", [](auto i, double v, auto) { return i % 256 < 10 ? 0 : static_cast<float>(v); }, 0.89},
          {"one in a block", [](auto i, double v, auto) { return i % 256 == 77 ? static_cast<float>(v) : 0; }, 0.05},
          {"far from each other", [](auto, double v, auto) { return static_cast<float>(std::exp2(60 * v)); }, 1},
          {"some far",
           [](auto i, double v, auto n) {
             return static_cast<float>(n % 50 == 0 ? 1e-30 * v : i % 4 == 0 ? 0 : v);
           },
           0.75},
          {"exactly fifteen octaves",
           [](auto i, double v, auto) { return static_cast<float>(std::exp2(i % 17) * std::copysign(1.0, v)); }, 0.95},
          {"denormals", [](auto, auto, auto n) { return word(n & 0x807fffff); }, 0.89},
          {"inf and NaN among numbers",
           [](auto i, double v, auto n) {
             return i % 9 == 0 ? word((n & 0x807fffff) | 0x7f800000) : i % 7 == 0 ? 0 : static_cast<float>(v);
           },
           1},
          {"any bits", [](auto, auto, auto n) { return word(n); }, 1}};
}

std::vector<Pattern<double>> patterns(double) {
  return {{"zeros", [](auto, auto, auto) { return 0.0; }, 0.02},
          {"a third zeros", [](auto i, double v, auto) { return i % 3 == 0 ? 0 : v; }, 0.7},
          {"minus zeros and NaN", [](auto i, auto, auto) { return i % 2 == 0 ? -0.0 : std::nan("7"); }, 1},
          {"no zeros", [](auto, double v, auto) { return v; }, 1}};
}

template <class T>
void check_comes_back(const Pattern<T>& pattern, std::size_t n) {
  CAPTURE(pattern.name, n, sizeof(T));
  const std::vector<double> drawn = test::random_values(n, pattern.name);
  const std::vector<std::int64_t> integers = test::random_integers(n, 0, 0xffffffff, pattern.name);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = pattern.draw(i, drawn[i], integers[i]);
  const std::vector<T> before = values;
  const auto codec = make_codec("lossless", {.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64});
  const auto elems = static_cast<std::int64_t>(n);
  const std::size_t most = codec->most_bytes(elems);
  std::vector<std::byte> wire(most + 1, std::byte{0xa5});
  const std::size_t bytes = codec->encode({.values = values.data(), .elems = elems}, wire.data());
  REQUIRE(bytes <= most);
  CHECK(wire[most] == std::byte{0xa5});
  if (n >= 2000) CHECK(static_cast<double>(bytes) <= pattern.most_part * static_cast<double>(most));
  CHECK(std::memcmp(values.data(), before.data(), most) == 0);
  const std::vector<std::byte> message(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(bytes));
  std::vector<T> decoded(n + 1, T{7}), sum(n, T{0.25});
  codec->decode(message.data(), bytes, decoded.data(), elems);
  CHECK(std::memcmp(decoded.data(), before.data(), most) == 0);
  CHECK(decoded[n] == 7);
  codec->decode_add(message.data(), bytes, sum.data(), elems);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T right = T{0.25} + before[i];
    wrong += std::memcmp(&sum[i], &right, sizeof(T)) != 0;
  }
  CHECK(wrong == 0);
  if (bytes < most) CHECK_THROWS(codec->decode(message.data(), bytes - 1, decoded.data(), elems));
}

}  // namespace

TEST_CASE("lossless: any bits come back, in the bytes that their blocks take", "[contract][codec]") {
  for (const std::size_t n : {1, 8, 63, 64, 255, 256, 257, 511, 600, 2048, 5003}) {
    for (const auto& pattern : patterns(0.0f)) check_comes_back(pattern, n);
    for (const auto& pattern : patterns(0.0)) check_comes_back(pattern, n);
  }
}

}  // namespace echelon
