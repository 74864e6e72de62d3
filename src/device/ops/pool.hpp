// SPDX-License-Identifier: Apache-2.0
// Pooling over 1 to 3 spatial axes: the maximum or the mean of each window of a channel.
//
// kind              inputs        outputs
//   pool_forward    x             y (+ saved)
//   pool_backward   dy (+ saved)  dx (adds)
//
// x (N, C, W), (N, C, H, W) or (N, C, D, H, W); y (N, C, out()). max ignores padding; among equal maxima the first in
// row-major order gets the gradient. An average divides by the number of the window's cells inside the image
// (average_inside) or by all of them (average_all). With `relu`, y = max(0, maximum), which is the max pool of ReLUs;
// where y = 0, no element gets the gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/op_description.hpp"
#include "device/ops/window.hpp"

namespace echelon::inline device {

enum class PoolMode : std::uint8_t { max, average_inside, average_all };
struct PoolDims {
  std::int64_t N, C;
  SpatialExtents in;
  AxisSizes kernel, stride = {};
  AxisPaddings pad = {};
  PoolMode mode = PoolMode::max;
  bool relu = false;             // only for a max pool
  std::int64_t more_behind = 0;  // padding behind the first spatial axis in addition to `pad`; negative: less
  SpatialExtents out() const {
    SpatialExtents padded = in;
    padded[in.first_axis()] += more_behind;
    return windows_over(padded, kernel, stride, pad);
  }
  // Cells of a window.
  std::int64_t cells() const { return kernel.d * kernel.h * kernel.w; }
  friend bool operator==(const PoolDims&, const PoolDims&) = default;

  void common(OpDescription& op) const {
    require_windows(op, in, kernel, stride, pad, out());
    AxisPaddings behind = pad;
    behind[in.first_axis()] += more_behind;
    for (int axis = 0; axis < kMostAxes; ++axis)
      op.require(behind[axis] >= 0 && std::max(pad[axis], behind[axis]) < kernel[axis],
                 "a padding of {} before and {} behind does not fit windows of {}",
                 {pad[axis], behind[axis], by(kernel, in.rank)});
    op.require(!relu || mode == PoolMode::max, "only a max pool can include a ReLU");
    op.extents({{"N", N}, {"C", C}});
    if (in.rank > 2) op.extents({{"D", in.d}});
    if (in.rank > 1) op.extents({{"H", in.h}});
    op.extents({{"W", in.w}});
    op.word(mode == PoolMode::max ? "max" : mode == PoolMode::average_inside ? "average inside" : "average all");
    op.word(by(kernel, in.rank));
    axes_word(op, "stride", stride, in.rank);
    axes_word(op, "pad", pad, in.rank);
    if (more_behind != 0) op.word("behind", behind[in.first_axis()]);
    op.flag(relu, "relu");
    op.flops(static_cast<double>(N * C * out().cells()) * static_cast<double>(cells()));
  }
  void pool_forward(OpDescription& op) const { op.in("x", x()).movable().out("y", y()).movable(); }
  void pool_backward(OpDescription& op) const { op.in("dy", y()).movable().out("dx", x()).adds().movable(); }

 private:
  Shape x() const { return with_axes(N, C, in, in.rank); }
  Shape y() const { return with_axes(N, C, out(), in.rank); }
};

}  // namespace echelon::inline device
