// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/panel_512.hpp"

namespace echelon::inline device::onednn {
#ifdef ECHELON_X86_BODIES
namespace {

template <int kRows, int kVectors>
struct FloatRows {
  __attribute__((target("avx512f"))) static void multiply(const PanelBlock<float>& at) {
    PanelSums512<kRows, kVectors, float> y(at);
    const float *x = at.x, *w = at.w;
    const std::byte* ahead = at.ahead;
    for (std::int64_t k = 0; k < at.depth; ++k, ++x, w += kPanels512.columns, ahead += at.ahead_step) {
      __builtin_prefetch(ahead);
      __m512 weights[kVectors];
      ECHELON_UNROLLED (v, kVectors) weights[v] = _mm512_loadu_ps(w + v * kLanes512);
      ECHELON_UNROLLED (r, kRows) {
        const __m512 all = _mm512_set1_ps(x[r * at.x_row]);
        ECHELON_UNROLLED (v, kVectors) y.sums[r][v] = _mm512_fmadd_ps(all, weights[v], y.sums[r][v]);
      }
    }
    y.store(at);
  }
};

}  // namespace

void multiply_panel(int rows, const PanelBlock<float>& block) {
  block.avx512 ? multiply_by_rows<FloatRows, kPanels512>(rows, block) : multiply_panel_avx2(rows, block);
}
#else
void multiply_panel(int rows, const PanelBlock<float>& block) { multiply_panel_avx2(rows, block); }
#endif

}  // namespace echelon::inline device::onednn
