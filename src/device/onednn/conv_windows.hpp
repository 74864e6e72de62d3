// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows do not overlap, seen as matrices: a window of x is a row of cells of the kernel by
// channels, and so is a pixel of y (one cell).
#pragma once

#include <algorithm>

#include "device/onednn/halves.hpp"
#include "device/onednn/planes.hpp"
#include "device/ops/conv.hpp"

namespace echelon::inline device::onednn {

// Whether each cell of x belongs to one window at most, and each cell of a window is a cell of x.
inline bool has_disjoint_windows(const ConvDims& d) {
  bool disjoint = d.groups == 1 && d.pad == AxisPaddings{} && d.dil == AxisSizes{};
  for (int axis = 0; axis < kMostAxes; ++axis) disjoint = disjoint && d.kernel[axis] <= d.stride[axis];
  return disjoint;
}

// Copies between an activation (N, C, extents) in a layout and the rows of its windows, (N, windows, cells, C).
class WindowRows {
 public:
  struct Form {
    std::int64_t N, C;
    SpatialExtents in, windows;
    AxisSizes kernel, stride;
  };
  static WindowRows of_x(const ConvDims& d, Layout layout, int threads) {
    return {{d.N, d.C, d.in, d.out(), d.kernel, d.stride}, layout, threads};
  }
  static WindowRows of_y(const ConvDims& d, Layout layout, int threads) {
    return {{d.N, d.K, d.out(), d.out(), {}, {}}, layout, threads};
  }

  std::int64_t rows() const { return f_.N * f_.windows.cells(); }
  std::int64_t columns() const { return cells_ * f_.C; }
  std::int64_t elems() const { return rows() * columns(); }
  // Whether the activation is its rows.
  bool in_place() const { return planes_.channels_last() && cells_ == 1 && f_.in == f_.windows; }

  template <class T>
  void gather(const T* x, T* rows) const {
    each_run([&](std::int64_t at, std::int64_t row, std::int64_t n) { std::copy_n(x + at, n, rows + row); });
  }
  // Sets or adds to x; cells of x without a window become 0 if x is set.
  template <class T>
  void scatter(const T* rows, T* x, bool add) const {
    const bool whole = f_.windows.cells() * cells_ == f_.in.cells();
    const std::int64_t lanes = planes_.channels_last() ? 1 : planes_.block();
    const std::int64_t stored = f_.N * f_.in.cells() * ((f_.C + lanes - 1) / lanes * lanes);
    if (!add && (!whole || f_.C % lanes != 0)) std::fill_n(x, stored, T{});
    each_run([&](std::int64_t at, std::int64_t row, std::int64_t n) {
      if (!add) {
        std::copy_n(rows + row, n, x + at);
        return;
      }
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) x[at + i] = rounded_to<T>(widened(x[at + i]) + widened(rows[row + i]));
    });
  }

 private:
  WindowRows(const Form& form, Layout layout, int threads)
      : f_(form), cells_(form.kernel.d * form.kernel.h * form.kernel.w), planes_(form.C, layout), threads_(threads) {}

  // Calls body(offset in the activation, offset in the rows, n) for all runs of n neighbouring channels.
  template <class Body>
  void each_run(const Body& body) const {
    const SpatialExtents &in = f_.in, &out = f_.windows;
    const std::int64_t run = planes_.channels_last() ? f_.C : planes_.block(), pixels = in.cells();
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && elems() >= kParallelElems)
    for (std::int64_t i = 0; i < f_.N * out.d * out.h; ++i) {
      const std::int64_t n = i / (out.d * out.h), first = i / out.h % out.d * f_.stride.d;
      for (std::int64_t q = 0; q < out.w; ++q) {
        std::int64_t row = (i * out.w + q) * columns();
        for (std::int64_t d = first; d < first + f_.kernel.d; ++d)
          for (std::int64_t h = i % out.h * f_.stride.h, r = 0; r < f_.kernel.h; ++r)
            for (std::int64_t w = q * f_.stride.w, s = 0; s < f_.kernel.w; ++s) {
              const std::int64_t pixel = ((d * in.h + h + r) * in.w + w + s) * planes_.pixel();
              for (std::int64_t c = 0; c < f_.C; c += run)
                body(planes_.offset(n, c, pixels) + pixel, row + c, std::min(run, f_.C - c));
              row += f_.C;
            }
      }
    }
  }

  Form f_;
  std::int64_t cells_;  // of the kernel
  Planes planes_;
  int threads_;
};

}  // namespace echelon::inline device::onednn
