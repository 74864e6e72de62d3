// SPDX-License-Identifier: Apache-2.0
#include "data/log1p.hpp"

#include <bit>

namespace echelon::inline data {
namespace {

// A choice without a branch, which would keep the loop out of vector registers.
float chosen(bool first, float a, float b) {
  const std::int32_t mask = -static_cast<std::int32_t>(first);
  return std::bit_cast<float>((std::bit_cast<std::int32_t>(a) & mask) | (std::bit_cast<std::int32_t>(b) & ~mask));
}

// After log1pf of FreeBSD's msun (Sun Microsystems, 1993): 1 + x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2),
// and ln(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)) with s = f / (2 + f). `lost` is what the sum 1 + x lost, over 1 + x.
float log1p_of(float x) {
  constexpr float kLn2High = 6.9313812256e-01F, kLn2Low = 9.0580006145e-06F;
  constexpr float kR1 = 0.66666662693F, kR2 = 0.40000972152F, kR3 = 0.28498786688F, kR4 = 0.24279078841F;
  constexpr std::int32_t kSqrtHalf = 0x3f3504f3, kOne = 0x3f800000, kMantissa = 0x007fffff, kExponent = 0x7f800000;
  const float sum = 1 + x;
  const auto bits = std::bit_cast<std::int32_t>(sum);
  const std::int32_t shifted = bits + (kOne - kSqrtHalf);
  const std::int32_t exponent = (shifted >> 23) - 127;
  const float f = std::bit_cast<float>((shifted & kMantissa) + kSqrtHalf) - 1;
  const auto k = static_cast<float>(exponent);
  const float large = 1 - (sum - x), small = x - (sum - 1);
  const float lost = chosen(exponent >= 2, large, small) / sum;
  const float s = f / (2 + f), z = s * s, w = z * z;
  const float r = z * (kR1 + w * kR3) + w * (kR2 + w * kR4), half = 0.5F * f * f;
  const float value = s * (half + r) + (k * kLn2Low + lost) - half + f + k * kLn2High;
  return chosen((bits & kExponent) == kExponent, sum, value);
}

}  // namespace

void take_log1p(float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = log1p_of(values[i]);
}

}  // namespace echelon::inline data
