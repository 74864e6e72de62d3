// SPDX-License-Identifier: Apache-2.0
// Uniform 16-bit draws for stochastic rounding, computed as hashes of (key, index): each value takes one draw, and each
// hash gives two. There is no state: the draw of an index does not depend on how the range is divided among calls or
// devices (cuda/ has the same code).
//
// Values 16 g .. 16 g + 15 of a range that begins at index `first` use the hashes of first + 8 g .. first + 8 g + 7:
// the first eight use the low halves, the others the high halves. The hash is Wellons' 32-bit lowbias32 (vector units
// have no 64-bit integer multiplication); one half of the key is xored in before it and the other in its middle.
#pragma once

#include <cstdint>

#include "base/vectors.hpp"

namespace echelon::inline comm {

class Draws {
 public:
  Draws(std::uint64_t key, std::int64_t first)
      : first_(static_cast<std::uint32_t>(first)),
        low_(_mm256_set1_epi32(static_cast<int>(key))),
        high_(_mm256_set1_epi32(static_cast<int>(key >> 32))) {}

  struct Sixteen {
    __m256i low, high;  // draws of the first eight values, and of the others; 0 to 65535
  };
  // The draws of values i .. i + 15 of the range; i is a multiple of 16.
  Sixteen sixteen(std::int64_t i) const {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i index =
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first_ + static_cast<std::uint32_t>(i / 2))), lanes);
    const __m256i bits = hash(index);
    return {_mm256_and_si256(bits, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(bits, 16)};
  }

 private:
  __m256i hash(__m256i x) const {
    x = _mm256_xor_si256(x, low_);
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(0x7feb352d));
    x = _mm256_xor_si256(x, high_);
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(0x846ca68bU)));
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
  }

  std::uint32_t first_;
  __m256i low_, high_;
};

}  // namespace echelon::inline comm
