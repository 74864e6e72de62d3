// SPDX-License-Identifier: Apache-2.0
// Upsampling by whole factors over 1 to 3 spatial axes.
//
// kind                 inputs   outputs
//   upsample_forward   x        y
//   upsample_backward  dy       dx (adds)
//
// x (N, C, in), y (N, C, in * factor). Nearest: y[i] = x[i / factor] along each axis. Linear interpolates along each
// axis between the centres of cells, as PyTorch does with align_corners = false: y[i] = (1 - t) x[a] + t x[b] at the
// position s = max(0, (i + 0.5) / factor - 0.5), with a = floor(s), t = s - a, b = min(a + 1, extent - 1).
#pragma once

#include <cstdint>

#include "device/op_description.hpp"
#include "device/ops/window.hpp"

namespace echelon::inline device {

struct UpsampleDims {
  std::int64_t N, C;
  SpatialExtents in;
  AxisSizes factor;
  bool linear = false;
  SpatialExtents out() const {
    SpatialExtents out = in;
    for (int axis = 0; axis < kMostAxes; ++axis) out[axis] *= factor[axis];
    return out;
  }
  friend bool operator==(const UpsampleDims&, const UpsampleDims&) = default;

  void common(OpDescription& op) const {
    op.require(in.rank >= 1 && in.rank <= kMostAxes, "{} spatial axes are not 1 to 3", {std::int64_t{in.rank}});
    for (int axis = 0; axis < kMostAxes; ++axis)
      op.require(factor[axis] >= 1 && (axis >= in.first_axis() || factor[axis] == 1), "a factor of {}", {factor[axis]});
    op.extents({{"N", N}, {"C", C}});
    if (in.rank > 2) op.extents({{"D", in.d}});
    if (in.rank > 1) op.extents({{"H", in.h}});
    op.extents({{"W", in.w}}).word(by(factor, in.rank)).word(linear ? "linear" : "nearest");
    op.flops(static_cast<double>(N * C * out().cells()) * (linear ? 3.0 * in.rank : 1.0));
  }
  void upsample_forward(OpDescription& op) const { op.in("x", x()).movable().out("y", y()).movable(); }
  void upsample_backward(OpDescription& op) const { op.in("dy", y()).movable().out("dx", x()).adds().movable(); }

 private:
  Shape x() const { return with_axes(N, C, in, in.rank); }
  Shape y() const { return with_axes(N, C, out(), in.rank); }
};

// The cells of x, a and b, that output `i` reads along one axis, with the weights 1 - t and t.
struct UpsampleTaps {
  std::int64_t a = 0, b = 0;
  double t = 0;
};
constexpr UpsampleTaps upsample_taps(std::int64_t i, std::int64_t factor, std::int64_t extent, bool linear) {
  if (!linear) return {i / factor, i / factor, 0};
  const double centre = (static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5;
  const double s = centre > 0 ? centre : 0;
  const auto a = static_cast<std::int64_t>(s);
  return {a, a + 1 < extent ? a + 1 : a, s - static_cast<double>(a)};
}

}  // namespace echelon::inline device
