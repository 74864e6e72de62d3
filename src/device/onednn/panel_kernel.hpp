// The innermost part of a product of few rows by many weights: some rows by one panel of 32 columns, in registers of
// AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::inline device::onednn {

inline constexpr std::int64_t kPanelColumns = 32;
// Rows by 2 vectors of sums, 2 vectors of weights and one of x fill the 32 registers.
inline constexpr int kPanelRows = 14;

// y (rows, columns) = x (rows, depth) w (depth, 32), or += that.
struct PanelBlock {
  const float* x;
  std::int64_t x_row;  // floats from a row to the next
  const float* w;
  float* y;
  std::int64_t y_row;
  std::int64_t depth;
  std::int64_t columns;  // of the panel that y has, 1 to 32
  bool add;
  const std::byte* ahead;  // weights wanted next: brought into cache meanwhile, `ahead_step` bytes per place of depth
  std::int64_t ahead_step;
};

// rows: 1 to kPanelRows. Only where the CPU has AVX-512.
void multiply_panel(int rows, const PanelBlock& block);

}  // namespace echelon::inline device::onednn
