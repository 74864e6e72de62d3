// SPDX-License-Identifier: Apache-2.0
// Like panel_kernel.cpp, with two elements of the depth per instruction.
#include <array>
#include <bit>
#include <cstring>

#include "device/onednn/panel_512.hpp"

namespace echelon::inline device::onednn {
namespace {

#ifdef ECHELON_X86_BODIES
template <int kRows, int kVectors>
struct HalfRows {
  __attribute__((target("avx512f,avx512bf16"))) static void multiply(const PanelBlock<BHalf>& at) {
    PanelSums512<kRows, kVectors, BHalf> y(at);
    const BHalf *x = at.x, *w = at.w;
    const std::byte* ahead = at.ahead;
    for (std::int64_t k = 0; k < at.depth; k += 2, x += 2, w += 2 * kPanels512.columns, ahead += at.ahead_step) {
      __builtin_prefetch(ahead);
      __m512i weights[kVectors];
      ECHELON_UNROLLED (v, kVectors) weights[v] = _mm512_loadu_si512(w + 2 * v * kLanes512);
      ECHELON_UNROLLED (r, kRows) {
        int both;
        std::memcpy(&both, x + r * at.x_row, sizeof both);
        const auto all = (__m512bh)_mm512_set1_epi32(both);
        ECHELON_UNROLLED (v, kVectors) y.sums[r][v] = _mm512_dpbf16_ps(y.sums[r][v], all, (__m512bh)weights[v]);
      }
    }
    y.store(at);
  }
};
#endif

void multiply_plainly(int rows, const PanelBlock<BHalf>& at) {
  for (int r = 0; r < rows; ++r) {
    std::array<float, kPanels512.columns> sums{};
    float* y = at.y + r * at.y_row;
    if (at.add) std::memcpy(sums.data(), y, static_cast<std::size_t>(at.columns) * sizeof(float));
    for (std::int64_t k = 0; k < at.depth; k += 2) {
      const BHalf *x = at.x + r * at.x_row + k, *w = at.w + k * kPanels512.columns;
      const float even = widened(x[0]), odd = widened(x[1]);
#pragma omp simd
      for (std::int64_t c = 0; c < kPanels512.columns; ++c) {
        std::uint32_t both;
        std::memcpy(&both, w + 2 * c, sizeof both);
        sums[c] += odd * std::bit_cast<float>(both & 0xffff0000) + even * std::bit_cast<float>(both << 16);
      }
    }
    std::memcpy(y, sums.data(), static_cast<std::size_t>(at.columns) * sizeof(float));
  }
}

}  // namespace

#ifdef ECHELON_X86_BODIES
void multiply_panel(int rows, const PanelBlock<BHalf>& block) {
  block.avx512 ? multiply_by_rows<HalfRows, kPanels512>(rows, block) : multiply_plainly(rows, block);
}
#else
void multiply_panel(int rows, const PanelBlock<BHalf>& block) { multiply_plainly(rows, block); }
#endif

}  // namespace echelon::inline device::onednn
