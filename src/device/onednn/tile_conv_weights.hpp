// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights by tiles (tiles.hpp), of bf16 activations with channels last.
//
//   dw[k, r, (s, c)] = sum over pixels (n, p, q) of dy[n, p, q, k] x[n, p stride - pad + r dil, q stride - pad + s, c]
//
// For each row r of the kernel this is a product over pixels. A line of its right factor is S C adjacent elements of x,
// and the lines of row r are those of row 0 further down the image. So x is packed once for all rows of the kernel with
// the same remainder of r dil by the stride, as pairs of lines; a tile begins at any pair. Images are multiplied in
// bands of rows, some at a time, so that both factors stay in cache. A slice of a volume is an image here: each slice
// of the kernel is multiplied in turn, with the slices of x that it meets.
#pragma once

#include <vector>

#include "device/onednn/primitive.hpp"
#include "device/onednn/tiles.hpp"
#include "device/ops/conv.hpp"

namespace echelon::inline device::onednn {

class TileConvWeights {
 public:
  struct Gradients {
    float *w = nullptr, *b = nullptr;  // dw (K, C, kernel) and, with a bias, db (K)
    bool add_w = false, add_b = false;
  };
  static bool fits(const ConvDims& d) { return d.in.rank >= 2 && d.groups == 1 && d.dil.w == 1; }

  // Reserves what it needs in `scratch`. `real`: uses the matrix unit, which must exist; else plain loops.
  TileConvWeights(const ConvDims& d, int threads, bool real, ScratchPlan& scratch);
  // x (N, [D,] H, W, C), dy (N, [O,] P, Q, K). `scratch`: the aligned start of the plan's memory.
  void run(const BHalf* x, const BHalf* dy, const Gradients& to, std::byte* scratch) const;

 private:
  // The rows of x of one remainder that a band meets; a row is Q lines, and one of zeros if Q is odd.
  struct Phase {
    std::int64_t first = 0;  // remainder
    std::int64_t rows = 0;   // of a band; 0: no row of the kernel has this remainder
    std::int64_t start = 0;  // of the phase in the right factor, in elements
  };
  // A tile of 16 columns.
  struct Side {
    std::int64_t start, band;  // its first element, distance between bands
  };
  // The slice of x that a slice of the kernel meets in a band, counted over all samples; -1: a slice of padding.
  std::int64_t slice_of_x(std::int64_t band, std::int64_t kernel_slice) const;
  void pack_row(const BHalf* x, std::int64_t slice, std::int64_t band, const Phase& phase, std::int64_t row, BHalf* to,
                BHalf* edges) const;
  void pack_left(const BHalf* dy, std::int64_t band, std::int64_t step, BHalf* to) const;
  void store(const float* sums, std::int64_t k, const Gradients& to) const;

  ConvDims d_;
  std::int64_t O_, P_, Q_, pairs_;  // of y; pairs of lines of a row
  int threads_;
  bool real_;
  std::int64_t band_rows_, bands_of_slice_, steps_, bands_;  // of y; steps of a band; bands packed at a time
  std::int64_t tiles_, columns_;  // tiles of columns of a row of the kernel; columns of all rows, in whole blocks
  std::vector<Phase> phases_;
  std::vector<Side> sides_;
  std::size_t left_at_, right_at_, edges_at_, sums_at_;
};

}  // namespace echelon::inline device::onednn
