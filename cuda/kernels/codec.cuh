// SPDX-License-Identifier: Apache-2.0
// Arithmetic that the codecs share. Each function rounds once: nothing may be contracted, or bits would differ from
// those of the host.
#pragma once

#include <cstdint>

#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

inline constexpr std::uint32_t kInfinity = 0x7f800000u;

__device__ inline std::uint32_t size_bits(float value) { return __float_as_uint(value) & 0x7fffffffu; }
__device__ inline float finite_or_zero(float value) { return size_bits(value) < kInfinity ? value : 0.0f; }
__device__ inline float residual_after(float corrected, float encoded) {
  return finite_or_zero(__fsub_rn(corrected, encoded));
}
// Stores the decoded value, or adds it to the value in memory.
__device__ inline void put_value(float* at, float encoded, bool add) { *at = add ? __fadd_rn(*at, encoded) : encoded; }

struct Most {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

}  // namespace echelon::cuda
