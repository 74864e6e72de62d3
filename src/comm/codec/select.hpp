// SPDX-License-Identifier: Apache-2.0
// Common to the sparse codecs: selection of values by magnitude. A "size" below is the bit pattern of a magnitude
// (magnitude_bits), compared as an integer: NaN is above inf, inf above every number, and comparisons do not round.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/vectors.hpp"

namespace echelon::inline comm {

inline std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

// Returns the size of the m-th largest of n values, 1 <= m <= n. Builds a histogram of 2048 bins (exponent, 3 bits of
// mantissa), then runs nth_element in one bin. Two passes, O(n); allocates memory for the values of that bin.
std::uint32_t nth_magnitude(const float* values, std::int64_t n, std::int64_t m);

// Replaces `indices` by the rising indices of the values above the size `least`, and of the first `ties` values of
// exactly this size, so that the choice among equals is deterministic.
void indices_from(const float* values, std::int64_t n, std::uint32_t least, std::int64_t ties,
                  std::vector<std::uint32_t>& indices);

// Returns the number of values above this size.
std::int64_t count_above(const float* values, std::int64_t n, std::uint32_t size);

// Sets all bits in the lanes whose size is at least `least`; least > 0.
inline __m256i lanes_from(__m256 values, std::uint32_t least) {
  const __m256i sizes = _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
  return _mm256_cmpgt_epi32(sizes, _mm256_set1_epi32(static_cast<int>(least - 1)));
}
inline unsigned mask_of(__m256i lanes) { return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes))); }

// For each mask of eight lanes: the indices of its set lanes, one per byte, packed to the front.
inline constexpr std::array<std::uint64_t, 256> kFrontOrder = [] {
  std::array<std::uint64_t, 256> order{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned lane = 0, to = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) order[mask] |= std::uint64_t{lane} << (8 * to++);
  return order;
}();

// The inverse: for each set lane, the number of set lanes before it.
inline constexpr std::array<std::uint64_t, 256> kBackOrder = [] {
  std::array<std::uint64_t, 256> order{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned lane = 0, from = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) order[mask] |= std::uint64_t{from++} << (8 * lane);
  return order;
}();

// Moves the lanes of the mask to the front.
inline __m256i to_front(__m256i lanes, unsigned mask) {
  const __m128i order = _mm_cvtsi64_si128(static_cast<long long>(kFrontOrder[mask]));
  return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(order));
}

// Grows work space that never shrinks to at least n entries, and keeps those it has.
template <class T>
void make_room(std::vector<T>& space, std::size_t n) {
  if (space.size() < n) space.resize(std::max(n, 2 * space.size()));
}

}  // namespace echelon::inline comm
