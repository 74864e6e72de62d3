// SPDX-License-Identifier: Apache-2.0
// Vector operations on eight f32 (AVX2), in which the codecs' loops are written. `n` < 8 occurs only at the end of a
// span; loads then fill the other lanes with 0, and stores leave the memory behind the span untouched. No alignment is
// needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vectors.hpp"

namespace echelon::inline comm {

inline constexpr std::int64_t kLanes = 8;

// Calls body(i, n) for i = 0, 8, ..
template <class Body>
void each_lanes(std::int64_t elems, Body&& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= elems; i += kLanes) body(i, kLanes);
  if (i < elems) body(i, elems - i);
}

// Prefetches the cache line `elems` after `at`, which may be beyond the span (a prefetch never faults). The hardware
// prefetcher stops at each page, and in loops that go over a block twice.
template <class T>
void fetch_ahead(const T* at, std::int64_t elems) {
  const auto where = reinterpret_cast<std::uintptr_t>(at) + static_cast<std::uintptr_t>(elems) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const char*>(where));
}

inline __m256 load_lanes(const float* at, std::int64_t n) {
  if (n == kLanes) [[likely]]
    return _mm256_loadu_ps(at);
  alignas(32) float part[kLanes] = {};
  std::memcpy(part, at, static_cast<std::size_t>(n) * sizeof(float));
  return _mm256_load_ps(part);
}

inline void store_lanes(float* at, __m256 values, std::int64_t n) {
  if (n == kLanes) [[likely]]
    return _mm256_storeu_ps(at, values);
  alignas(32) float part[kLanes];
  _mm256_store_ps(part, values);
  std::memcpy(at, part, static_cast<std::size_t>(n) * sizeof(float));
}

inline __m128i load_halves(const std::byte* at, std::int64_t n) {
  if (n == kLanes) [[likely]]
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  alignas(16) std::byte part[16] = {};
  std::memcpy(part, at, 2 * static_cast<std::size_t>(n));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(part));
}

inline void store_halves(std::byte* at, __m128i halves, std::int64_t n) {
  if (n == kLanes) [[likely]]
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(at), halves);
  alignas(16) std::byte part[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(part), halves);
  std::memcpy(at, part, 2 * static_cast<std::size_t>(n));
}

// Converts 32 integers to signed bytes, in order, saturated to [-128, 127].
inline __m256i bytes_of(const __m256i (&integers)[4]) {
  const __m256i low = _mm256_packs_epi32(integers[0], integers[1]), high = _mm256_packs_epi32(integers[2], integers[3]);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline std::int32_t largest_lane(__m256i integers) {
  alignas(32) std::int32_t part[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(part), integers);
  return *std::max_element(part, part + kLanes);
}

// Adds in the same order on every machine: ((0+4) + (2+6)) + ((1+5) + (3+7)).
inline float sum_lanes(__m256 values) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline __m256 magnitude(__m256 values) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), values); }

// Replaces inf and NaN by 0, because they would never leave a residual.
inline __m256 finite_or_zero(__m256 values) {
  const __m256 finite = _mm256_cmp_ps(magnitude(values), _mm256_set1_ps(__builtin_inff()), _CMP_LT_OQ);
  return _mm256_and_ps(values, finite);
}

}  // namespace echelon::inline comm
