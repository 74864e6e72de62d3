// The innermost part of a product of few rows by many weights: some rows by one panel of 32 columns, in registers of
// AVX-512.
//
// Weights of f32 lie (depth, 32). Those of bf16 lie (depth / 2, 32, 2), as vdpbf16ps reads them: two places of the
// depth, which is even, beside each other for each column.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/onednn/halves.hpp"

namespace echelon::inline device::onednn {

inline constexpr std::int64_t kPanelColumns = 32;
// The library's format of panels, and so that of bf16: their inputs are filled up to a multiple of this.
inline constexpr std::int64_t kPanelInputs = 16;
// Rows by 2 vectors of sums, 2 vectors of weights and one of x fill the 32 registers.
inline constexpr int kPanelRows = 14;

// How many parts of so many cover the whole.
constexpr std::int64_t panel_parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }
constexpr std::int64_t panel_depth(std::int64_t inputs) { return panel_parts(inputs, kPanelInputs) * kPanelInputs; }

// y (rows, columns) = x (rows, depth) w (depth, 32), or += that. T: float or BHalf.
template <class T>
struct PanelBlock {
  const T* x = nullptr;
  std::int64_t x_row = 0;  // elements from a row to the next
  const T* w = nullptr;
  float* y = nullptr;
  std::int64_t y_row = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;  // of the panel that y has, 1 to 32
  bool add = false;
  const std::byte* ahead = nullptr;  // weights wanted next: brought into cache meanwhile,
  std::int64_t ahead_step = 0;       // so many bytes per place of depth, or per two of bf16
  bool by_instruction = false;       // bf16: by vdpbf16ps, which the CPU has; else by a plain loop
};

// rows: 1 to kPanelRows. f32 only where the CPU has AVX-512.
void multiply_panel(int rows, const PanelBlock<float>& block);
void multiply_panel(int rows, const PanelBlock<BHalf>& block);

}  // namespace echelon::inline device::onednn
