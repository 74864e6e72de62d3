// SPDX-License-Identifier: Apache-2.0
// Like panel_kernel.cpp, in AVX2 registers, and for every processor without AVX-512.
#include "base/vectors.hpp"
#include "device/onednn/panel_kernel.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr int kLanes = 8;

// Uses kVectors of the panel's two vectors; the last one holds `tail` columns.
template <int kRows, int kVectors>
struct Rows {
  static void multiply(const PanelBlock<float>& at) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const auto tail = static_cast<int>(at.columns) - (kVectors - 1) * kLanes;
    const auto mask = [&](int v) {
      return _mm256_cmpgt_epi32(_mm256_set1_epi32(v + 1 == kVectors ? tail : kLanes), lane);
    };
    __m256 sums[kRows][kVectors];
    ECHELON_UNROLLED (r, kRows)
      ECHELON_UNROLLED (v, kVectors)
        sums[r][v] = at.add ? _mm256_maskload_ps(at.y + r * at.y_row + v * kLanes, mask(v)) : _mm256_setzero_ps();
    const float *x = at.x, *w = at.w;
    const std::byte* ahead = at.ahead;
    for (std::int64_t k = 0; k < at.depth; ++k, ++x, w += kPanels256.columns, ahead += at.ahead_step) {
      __builtin_prefetch(ahead);
      __m256 weights[kVectors];
      ECHELON_UNROLLED (v, kVectors) weights[v] = _mm256_loadu_ps(w + v * kLanes);
      ECHELON_UNROLLED (r, kRows) {
        const __m256 all = _mm256_broadcast_ss(x + r * at.x_row);
        ECHELON_UNROLLED (v, kVectors) sums[r][v] = _mm256_fmadd_ps(all, weights[v], sums[r][v]);
      }
    }
    ECHELON_UNROLLED (r, kRows)
      ECHELON_UNROLLED (v, kVectors) _mm256_maskstore_ps(at.y + r * at.y_row + v * kLanes, mask(v), sums[r][v]);
  }
};

}  // namespace

void multiply_panel_avx2(int rows, const PanelBlock<float>& block) { multiply_by_rows<Rows, kPanels256>(rows, block); }

}  // namespace echelon::inline device::onednn
