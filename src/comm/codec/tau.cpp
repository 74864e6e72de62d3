// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/tau.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "comm/codec/lanes.hpp"
#include "comm/codec/select.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::int64_t kBlock = 4096, kAhead = 512;

void note_exception(__m256 corrected, std::int64_t index, float* values, Selected& into) {
  const unsigned mask = mask_of(lanes_from(corrected, kInfinityBits));
  if (mask == 0) return;
  const int lane = std::countr_zero(mask);
  alignas(32) float all[kLanes];
  _mm256_store_ps(all, corrected);
  into.exception = {.index = static_cast<std::uint32_t>(index + lane), .value = all[lane]};
  values[lane] += all[lane];
}

// Lanes past the end hold 0.
void select_lanes(float tau, float* values, float* residual, std::int64_t n, std::int64_t first, Selected& into) {
  fetch_ahead(values, kAhead);
  __m256 corrected = load_lanes(values, n);
  if (residual) {
    fetch_ahead(residual, kAhead);
    corrected = _mm256_add_ps(corrected, load_lanes(residual, n));
  }
  const __m256i chosen = lanes_from(corrected, magnitude_bits(tau));
  const __m256 sign = _mm256_and_ps(corrected, _mm256_set1_ps(-0.0f));
  const __m256 encoded = _mm256_and_ps(_mm256_castsi256_ps(chosen), _mm256_or_ps(sign, _mm256_set1_ps(tau)));
  store_lanes(values, encoded, n);
  if (residual) store_lanes(residual, finite_or_zero(_mm256_sub_ps(corrected, encoded)), n);
  const unsigned mask = mask_of(chosen);
  if (mask == 0) return;
  const __m256i index =
      _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256i minus = _mm256_srli_epi32(_mm256_castps_si256(corrected), 31);
  const __m256i entry = _mm256_or_si256(_mm256_slli_epi32(index, 1), minus);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(into.entries.data() + into.count), to_front(entry, mask));
  into.count += static_cast<std::size_t>(std::popcount(mask));
  if (!into.exception) note_exception(corrected, first, values, into);
}

}  // namespace

void select_beyond(float tau, float* values, float* residual, std::int64_t elems, std::int64_t first, Selected& into) {
  for (std::int64_t at = 0; at < elems; at += kBlock) {
    make_room(into.entries, into.count + static_cast<std::size_t>(kBlock + kLanes));
    each_lanes(std::min(kBlock, elems - at), [&](std::int64_t i, std::int64_t n) {
      select_lanes(tau, values + at + i, residual ? residual + at + i : nullptr, n, first + at + i, into);
    });
  }
}

float first_tau(const float* values, std::int64_t elems, std::int64_t chosen) {
  const std::uint32_t size = nth_magnitude(values, elems, chosen);
  return size < kInfinityBits ? std::bit_cast<float>(size) : 0;
}

float adapted_tau(float tau, double density, double aim, double largest_residual) {
  if (tau == 0 || (density == 0 && largest_residual < tau / 2)) return tau;
  const double ratio = density / aim;
  const double factor = ratio > 2 ? std::min(std::sqrt(ratio / 2), 2.0) : std::max(std::pow(ratio, 0.02), 0.95);
  return std::clamp(static_cast<float>(tau * factor), FLT_MIN, FLT_MAX);
}

}  // namespace echelon::inline comm
