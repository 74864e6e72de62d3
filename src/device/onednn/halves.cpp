// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/halves.hpp"

#include <cstring>

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

}  // namespace

void widen(const BHalf* from, float* to, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { to[i] = widened(from[i]); });
}

void round_halves(const float* from, BHalf* to, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { to[i] = rounded(from[i]); });
}

void round_in_f32(const float* from, float* to, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { to[i] = std::bit_cast<float>(rounded_bits(from[i])); });
}

void round_operand(const Precision& precision, const float* from, void* to, std::int64_t n, int threads) {
  if (precision.halves()) return round_halves(from, static_cast<BHalf*>(to), n, threads);
  if (precision.rounds) return round_in_f32(from, static_cast<float*>(to), n, threads);
  if (from != to && n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
}

void add_halves(const BHalf* a, const BHalf* b, BHalf* sum, std::int64_t n, int threads) {
  for_each(n, threads, [=](std::int64_t i) { sum[i] = rounded(widened(a[i]) + widened(b[i])); });
}

}  // namespace echelon::inline device::onednn
