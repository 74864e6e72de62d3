// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/panel_kernel.hpp"

#include <array>
#include <utility>

#include "base/intrinsics.hpp"

namespace echelon::inline device::onednn {
#ifdef ECHELON_X86_BODIES
namespace {

constexpr int kLanes = 16;
using Kernel = void (*)(const PanelBlock<float>&);

// Uses kVectors of the panel's two vectors; the last one holds `tail` columns.
template <int kRows, int kVectors>
__attribute__((target("avx512f"))) void multiply_rows(const PanelBlock<float>& at) {
  const auto tail = static_cast<__mmask16>((1U << (at.columns - (kVectors - 1) * kLanes)) - 1U);
  const auto mask = [&](int v) { return v + 1 == kVectors ? tail : static_cast<__mmask16>(0xffff); };
  __m512 sums[kRows][kVectors];
  ECHELON_UNROLLED (r, kRows)
    ECHELON_UNROLLED (v, kVectors)
      sums[r][v] = at.add ? _mm512_maskz_loadu_ps(mask(v), at.y + r * at.y_row + v * kLanes) : _mm512_setzero_ps();
  const float *x = at.x, *w = at.w;
  const std::byte* ahead = at.ahead;
  for (std::int64_t k = 0; k < at.depth; ++k, ++x, w += kPanels512.columns, ahead += at.ahead_step) {
    __builtin_prefetch(ahead);
    __m512 weights[kVectors];
    ECHELON_UNROLLED (v, kVectors) weights[v] = _mm512_loadu_ps(w + v * kLanes);
    ECHELON_UNROLLED (r, kRows) {
      const __m512 all = _mm512_set1_ps(x[r * at.x_row]);
      ECHELON_UNROLLED (v, kVectors) sums[r][v] = _mm512_fmadd_ps(all, weights[v], sums[r][v]);
    }
  }
  ECHELON_UNROLLED (r, kRows)
    ECHELON_UNROLLED (v, kVectors) _mm512_mask_storeu_ps(at.y + r * at.y_row + v * kLanes, mask(v), sums[r][v]);
}

template <int kVectors, int... kRows>
constexpr std::array<Kernel, sizeof...(kRows)> kernels(std::integer_sequence<int, kRows...>) {
  return {multiply_rows<kRows + 1, kVectors>...};
}

}  // namespace

void multiply_panel(int rows, const PanelBlock<float>& block) {
  if (!block.avx512) return multiply_panel_avx2(rows, block);
  using Counts = std::make_integer_sequence<int, kPanels512.rows>;
  static constexpr auto kNarrow = kernels<1>(Counts{}), kWide = kernels<2>(Counts{});
  (block.columns > kLanes ? kWide : kNarrow)[static_cast<std::size_t>(rows - 1)](block);
}
#else
void multiply_panel(int rows, const PanelBlock<float>& block) { multiply_panel_avx2(rows, block); }
#endif

}  // namespace echelon::inline device::onednn
