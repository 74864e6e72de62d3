// SPDX-License-Identifier: Apache-2.0
// The functions and types that kernels use: indices, barriers, votes, atomics and operations that round once.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>  // ::exp and its like for float too

#include <algorithm>
#include <bit>
#include <cstdint>
#include <source_location>

#include "tests/cuda_on_cpu/blocks.hpp"

struct uint3 {
  unsigned x, y, z;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

inline void __syncthreads(std::source_location at = std::source_location::current()) {
  echelon::on_cpu::meet_block(false, at);
}
inline int __syncthreads_or(int vote, std::source_location at = std::source_location::current()) {
  return echelon::on_cpu::meet_block(vote != 0, at) ? 1 : 0;
}
inline unsigned __ballot_sync(unsigned lanes, int vote, std::source_location at = std::source_location::current()) {
  return echelon::on_cpu::meet_warp(lanes, vote != 0, at);
}

// All lanes of a warp call it. After the first barrier, the words to read have been written; the second one keeps lanes
// from overwriting them too early.
inline unsigned shuffled_words[1024];
inline unsigned __shfl_xor_sync(unsigned lanes, unsigned word, int mask,
                                std::source_location at = std::source_location::current()) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  shuffled_words[thread] = word;
  echelon::on_cpu::meet_warp(lanes, false, at);
  const unsigned other = shuffled_words[thread ^ static_cast<unsigned>(mask)];
  echelon::on_cpu::meet_warp(lanes, false, at);
  return other;
}

// Threads take turns, so that no other access comes between reading and writing.
template <class T, class V>
T atomicAdd(T* at, V value) {
  const T before = *at;
  *at = before + static_cast<T>(value);
  return before;
}
template <class T, class V>
T atomicMin(T* at, V value) {
  const T before = *at;
  *at = std::min(before, static_cast<T>(value));
  return before;
}
template <class T, class V>
T atomicOr(T* at, V value) {
  const T before = *at;
  *at = before | static_cast<T>(value);
  return before;
}

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
// Nothing is contracted here (-ffp-contract=off).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
// Rounds to nearest, ties to even; values out of range become the nearest int, NaN becomes 0.
inline int __float2int_rn(float value) {
  if (!(value == value)) return 0;
  if (value >= 0x1p31f) return INT32_MAX;
  return value < -0x1p31f ? INT32_MIN : static_cast<int>(::rintf(value));
}
