// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/halves.hpp"

#include <cstring>

#include "base/vectors.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// Starts a team only if it pays: a team of one thread costs as much as some hundred elements, and rows of a batch are
// not longer.
template <class Body>
void for_each(std::int64_t n, int threads, const Body& body) {
  if (threads > 1 && n >= kParallelElems) {
#pragma omp parallel for simd num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) body(i);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }
}

// The same for instructions on eight elements: eight(i) is for elements i to i + 7, one(i) for those left over.
template <class Eight, class One>
void for_eights(std::int64_t n, int threads, const Eight& eight, const One& one) {
  const std::int64_t whole = n / 8 * 8;
  if (threads > 1 && n >= kParallelElems) {
#pragma omp parallel for num_threads(threads)
    for (std::int64_t i = 0; i < whole; i += 8) eight(i);
  } else {
    for (std::int64_t i = 0; i < whole; i += 8) eight(i);
  }
  for (std::int64_t i = whole; i < n; ++i) one(i);
}

__m256 eight_of(const IeeeHalf* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
__m128i halves_of(__m256 values) { return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT); }
void put_eight(__m256 values, IeeeHalf* to) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves_of(values)); }

}  // namespace

void widen(const BHalf* from, float* to, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { to[i] = widened(from[i]); });
}

void round_halves(const float* from, BHalf* to, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { to[i] = rounded(from[i]); });
}

void widen(const IeeeHalf* from, float* to, std::int64_t n, int threads) {
  for_eights(
      n, threads, [=](std::int64_t i) { _mm256_storeu_ps(to + i, eight_of(from + i)); },
      [=](std::int64_t i) { to[i] = f16_value(from[i].bits); });
}

void round_halves(const float* from, IeeeHalf* to, std::int64_t n, int threads) {
  for_eights(
      n, threads, [=](std::int64_t i) { put_eight(_mm256_loadu_ps(from + i), to + i); },
      [=](std::int64_t i) { to[i].bits = f16_bits(from[i]); });
}

void round_in_f32(const float* from, float* to, std::int64_t n, int threads, dnnl::memory::data_type half) {
  if (half == kF16.half)
    return for_eights(
        n, threads,
        [=](std::int64_t i) { _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves_of(_mm256_loadu_ps(from + i)))); },
        [=](std::int64_t i) { to[i] = f16_value(f16_bits(from[i])); });
  for_each(n, threads, [=](std::int64_t i) { to[i] = std::bit_cast<float>(rounded_bits(from[i])); });
}

void round_operand(const Precision& precision, const float* from, void* to, std::int64_t n, int threads) {
  if (precision.bf16()) return round_halves(from, static_cast<BHalf*>(to), n, threads);
  if (precision.halves()) return round_halves(from, static_cast<IeeeHalf*>(to), n, threads);
  if (precision.rounds) return round_in_f32(from, static_cast<float*>(to), n, threads, precision.half);
  if (from != to && n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
}

void add_halves(const BHalf* a, const BHalf* b, BHalf* sum, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { sum[i] = rounded(widened(a[i]) + widened(b[i])); });
}

void add_halves(const IeeeHalf* a, const IeeeHalf* b, IeeeHalf* sum, std::int64_t n, int threads) {
  for_eights(
      n, threads, [=](std::int64_t i) { put_eight(_mm256_add_ps(eight_of(a + i), eight_of(b + i)), sum + i); },
      [=](std::int64_t i) { sum[i].bits = f16_bits(f16_value(a[i].bits) + f16_value(b[i].bits)); });
}

}  // namespace echelon::inline device::onednn
