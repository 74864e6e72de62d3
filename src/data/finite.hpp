// SPDX-License-Identifier: Apache-2.0
// Whether values are finite, in one pass at memory speed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace echelon::inline data {

// Without a branch: finds the greatest magnitude as bits, which orders infinity and NaN last.
inline bool all_finite(const float* values, std::int64_t count) {
  std::uint32_t greatest = 0;
  for (std::int64_t i = 0; i < count; ++i)
    greatest = std::max(greatest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU);
  return greatest < 0x7f800000U;
}

}  // namespace echelon::inline data
