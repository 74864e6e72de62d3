// SPDX-License-Identifier: Apache-2.0
// Halves on the host, for tests, computed as a GPU does in registers: rounds to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/dtype.hpp"
#include "base/vectors.hpp"

namespace echelon::verify {

inline std::uint16_t to_half(DType dtype, float value) {
  if (dtype == DType::f16) return f16_bits(value);
  if (std::isnan(value)) return 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float from_half(DType dtype, std::uint16_t half) {
  if (dtype == DType::f16) return f16_value(half);
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

}  // namespace echelon::verify
