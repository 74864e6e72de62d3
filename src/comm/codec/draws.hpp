// Draws in [0, 1) as hashes of (key, place), eight at a time: stochastic rounding needs one a value.
//
// 32 bits: vector units multiply no 64-bit integers. The mixer is Wellons' lowbias32, once with each half of the key.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace echelon {

class Draws {
 public:
  explicit Draws(std::uint64_t key)
      : low_(static_cast<std::uint32_t>(key)), high_(static_cast<std::uint32_t>(key >> 32)) {}

  // Of places first .. first + 7.
  __m256 lanes(std::int64_t first) const {
    const __m256i place =
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i once = mix(_mm256_xor_si256(place, _mm256_set1_epi32(static_cast<int>(low_))));
    const __m256i bits = mix(_mm256_xor_si256(once, _mm256_set1_epi32(static_cast<int>(high_))));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(bits, 8)), _mm256_set1_ps(0x1.0p-24f));
  }

 private:
  static __m256i mix(__m256i x) {
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(0x7feb352d));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(0x846ca68bU)));
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
  }

  std::uint32_t low_, high_;
};

}  // namespace echelon
