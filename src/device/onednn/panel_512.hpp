// SPDX-License-Identifier: Apache-2.0
// The sums of a panel's product in registers of AVX-512, for weights of f32 and of bf16.
#pragma once

#include "base/intrinsics.hpp"
#include "device/onednn/panel_kernel.hpp"

namespace echelon::inline device::onednn {

#ifdef ECHELON_X86_BODIES
inline constexpr int kLanes512 = 16;

// Uses kVectors of the panel's two vectors; the last one holds the rest of the block's columns.
template <int kRows, int kVectors, class T>
struct PanelSums512 {
  __attribute__((target("avx512f"), always_inline)) explicit PanelSums512(const PanelBlock<T>& at) {
    ECHELON_UNROLLED (r, kRows)
      ECHELON_UNROLLED (v, kVectors)
        sums[r][v] = at.add ? _mm512_maskz_loadu_ps(mask(at, v), place(at, r, v)) : _mm512_setzero_ps();
  }
  __attribute__((target("avx512f"), always_inline)) void store(const PanelBlock<T>& at) const {
    ECHELON_UNROLLED (r, kRows)
      ECHELON_UNROLLED (v, kVectors) _mm512_mask_storeu_ps(place(at, r, v), mask(at, v), sums[r][v]);
  }

  __m512 sums[kRows][kVectors];

 private:
  static __mmask16 mask(const PanelBlock<T>& at, int v) {
    const auto tail = static_cast<__mmask16>((1U << (at.columns - (kVectors - 1) * kLanes512)) - 1U);
    return v + 1 == kVectors ? tail : static_cast<__mmask16>(0xffff);
  }
  static float* place(const PanelBlock<T>& at, int r, int v) { return at.y + r * at.y_row + v * kLanes512; }
};
#endif

}  // namespace echelon::inline device::onednn
