// SPDX-License-Identifier: Apache-2.0
// IEEE halves: rounding to nearest, ties to even, by the processor's conversions; NaN is 0x7fff as on a GPU.
#pragma once

#include "base/vectors.hpp"

struct __half {
  unsigned short bits;
  __half() = default;
  explicit __half(float value)
      : bits(value == value ? echelon::f16_bits(value) : static_cast<unsigned short>(0x7fff)) {}
  explicit __half(int value) : __half(static_cast<float>(value)) {}
};

inline float __half2float(__half value) { return echelon::f16_value(value.bits); }
inline __half __float2half_rn(float value) { return __half(value); }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(unsigned short bits) {
  __half value;
  value.bits = bits;
  return value;
}
