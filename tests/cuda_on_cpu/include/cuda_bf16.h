// SPDX-License-Identifier: Apache-2.0
// The upper halves of floats: rounding to nearest, ties to even; NaN is 0x7fff as on a GPU.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) : bits(0x7fff) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    if (value == value) bits = static_cast<unsigned short>((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
  }
  explicit __nv_bfloat16(int value) : __nv_bfloat16(static_cast<float>(value)) {}
};

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
