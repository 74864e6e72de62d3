// SPDX-License-Identifier: Apache-2.0
// Takes channels apart that lie together at each place.
#pragma once

#include <array>
#include <cstdint>

#include "base/vectors.hpp"

namespace echelon::inline data {

// Copies values from[place * stride + i] to rows[i][place], for 4 channels i and `count` places.
inline void take_four_channels(const float* from, std::int64_t stride, std::int64_t count,
                               const std::array<float*, 4>& rows) {
  std::int64_t place = 0;
  for (; place + 4 <= count; place += 4) {
    const float* const at = from + place * stride;
    const __m128 a = _mm_loadu_ps(at), b = _mm_loadu_ps(at + stride);
    const __m128 c = _mm_loadu_ps(at + 2 * stride), d = _mm_loadu_ps(at + 3 * stride);
    const __m128 ab = _mm_unpacklo_ps(a, b), cd = _mm_unpacklo_ps(c, d);  // a0 b0 a1 b1
    const __m128 ab_high = _mm_unpackhi_ps(a, b), cd_high = _mm_unpackhi_ps(c, d);
    _mm_storeu_ps(rows[0] + place, _mm_movelh_ps(ab, cd));
    _mm_storeu_ps(rows[1] + place, _mm_movehl_ps(cd, ab));
    _mm_storeu_ps(rows[2] + place, _mm_movelh_ps(ab_high, cd_high));
    _mm_storeu_ps(rows[3] + place, _mm_movehl_ps(cd_high, ab_high));
  }
  for (; place < count; ++place)
    for (std::size_t i = 0; i < 4; ++i) rows[i][place] = from[place * stride + static_cast<std::int64_t>(i)];
}

}  // namespace echelon::inline data
