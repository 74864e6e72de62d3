// SPDX-License-Identifier: Apache-2.0
// The innermost loop of a product of few rows by many weights: some rows by one panel of columns, in registers.
//
// Weights of f32 are stored as (depth, columns), those of bf16 as (depth / 2, columns, 2), which vdpbf16ps reads: for
// each column two adjacent elements of the depth, which is even, are beside each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "device/onednn/halves.hpp"

namespace echelon::inline device::onednn {

// The registers hold `rows` times 2 vectors of sums, 2 vectors of weights and one of x.
struct PanelForm {
  std::int64_t columns = 0;
  int rows = 0;
  std::int64_t depth = 0;  // the weights of this many inputs stay in cache, with those fetched ahead, for all rows
};
// AVX-512 has 32 registers of 16 floats, AVX2 has 16 of 8. bf16 uses the first form on every CPU.
inline constexpr PanelForm kPanels512 = {32, 14, 160}, kPanels256 = {16, 6, 256};
// The library's panel format, which bf16 panels share: their inputs are padded to a multiple of this.
inline constexpr std::int64_t kPanelInputs = 16;

// A loop over sums: g++ keeps an array of them in registers only where it is unrolled early.
#define ECHELON_UNROLLED(index, count) _Pragma("GCC unroll 16") for (int index = 0; index < (count); ++index)

// The number of parts of size `part` that cover the whole.
constexpr std::int64_t panel_parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }
constexpr std::int64_t panel_depth(std::int64_t inputs) { return panel_parts(inputs, kPanelInputs) * kPanelInputs; }

// y (rows, columns) = x (rows, depth) w (depth, columns of the panel), or y += that. T: float or BHalf.
template <class T>
struct PanelBlock {
  const T* x = nullptr;
  std::int64_t x_row = 0;  // elements from a row to the next
  const T* w = nullptr;
  float* y = nullptr;
  std::int64_t y_row = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;  // number of columns of the panel that y has, at least 1
  bool add = false;
  const std::byte* ahead = nullptr;  // weights needed next, fetched into cache meanwhile,
  std::int64_t ahead_step = 0;       // this many bytes per element of depth, or per two elements of bf16
  bool avx512 = false;               // f32: kPanels512, else kPanels256; bf16: vdpbf16ps, else a plain loop
};

// Calls Kernel<rows, vectors>::multiply, with as many of a panel's two vectors as the block has columns in.
template <template <int kRows, int kVectors> class Kernel, PanelForm kForm, class T>
void multiply_by_rows(int rows, const PanelBlock<T>& block) {
  using Multiply = void (*)(const PanelBlock<T>&);
  constexpr auto kKernels = []<int... kRows>(std::integer_sequence<int, kRows...>) {
    return std::array<std::array<Multiply, 2>, kForm.rows>{
        {{Kernel<kRows + 1, 1>::multiply, Kernel<kRows + 1, 2>::multiply}...}};
  };
  static constexpr auto kByRows = kKernels(std::make_integer_sequence<int, kForm.rows>{});
  kByRows[static_cast<std::size_t>(rows - 1)][block.columns > kForm.columns / 2](block);
}

// rows: from 1 to the number of rows of the panel's form.
void multiply_panel(int rows, const PanelBlock<float>& block);
void multiply_panel_avx2(int rows, const PanelBlock<float>& block);
void multiply_panel(int rows, const PanelBlock<BHalf>& block);

}  // namespace echelon::inline device::onednn
