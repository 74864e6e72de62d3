// SPDX-License-Identifier: Apache-2.0
// Convolution over 1 to 3 spatial axes: cross-correlation with zero padding. For two axes:
//
//   y[n,k,p,q] = b[k] + sum_{c,r,s} x[n, c, p*stride - pad + r*dil, q*stride - pad + s*dil] w[k,c,r,s]
//
// kind                     inputs       outputs
//   conv_forward           x w [b]      y
//   conv_backward_data     dy w         dx (adds)
//   conv_backward_weights  x dy         dw (adds) [db (adds)]
//
// x (N, C, W), (N, C, H, W) or (N, C, D, H, W); y (N, K, out()), w (K, C/groups, kernel), b (K). With `groups`, the
// output channels of a group depend only on the input channels of that group.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"
#include "device/ops/window.hpp"

namespace echelon::inline device {

struct ConvDims {
  std::int64_t N, C;
  SpatialExtents in;
  std::int64_t K;
  AxisSizes kernel, stride = {};
  AxisPaddings pad = {};
  AxisSizes dil = {};
  std::int64_t groups = 1;
  bool bias = true;
  SpatialExtents out() const { return windows_over(in, kernel, stride, pad, dil); }
  std::int64_t P() const { return window_extent(in.h, kernel.h, stride.h, pad.h, dil.h); }
  std::int64_t Q() const { return window_extent(in.w, kernel.w, stride.w, pad.w, dil.w); }
  std::int64_t weights() const { return K * (C / groups) * kernel.d * kernel.h * kernel.w; }
  friend bool operator==(const ConvDims&, const ConvDims&) = default;

  void common(OpDescription& op) const {
    op.require(groups >= 1 && C % groups == 0 && K % groups == 0,
               "{} groups do not divide {} input and {} output channels", {groups, C, K});
    require_windows(op, in, kernel, stride, pad, out());
    op.extents({{"N", N}, {"C", C}});
    if (in.rank > 2) op.extents({{"D", in.d}});
    if (in.rank > 1) op.extents({{"H", in.h}});
    op.extents({{"W", in.w}, {"K", K}}).word(by(kernel, in.rank));
    axes_word(op, "stride", stride, in.rank);
    axes_word(op, "pad", pad, in.rank);
    axes_word(op, "dil", dil, in.rank);
    if (groups > 1) op.word("groups", groups);
    op.flops(2 * (static_cast<double>(N * out().cells()) * static_cast<double>(weights())));
  }
  void conv_forward(OpDescription& op) const {
    op.flag(!bias, "no bias").in("x", x()).movable().in("w", w()).parameter();
    if (bias) op.in("b", {K}).parameter();
    op.out("y", y()).movable();
  }
  void conv_backward_data(OpDescription& op) const {
    op.in("dy", y()).movable().in("w", w()).parameter().out("dx", x()).adds().movable();
  }
  void conv_backward_weights(OpDescription& op) const {
    op.flag(!bias, "no bias").in("x", x()).movable().in("dy", y()).movable().out("dw", w()).adds().wide();
    if (bias) op.out("db", {K}).adds().wide();
  }
  // (K, C/groups, kernel)
  Shape w() const { return with_axes(K, C / groups, kernel, in.rank); }

 private:
  Shape x() const { return with_axes(N, C, in, in.rank); }
  Shape y() const { return with_axes(N, K, out(), in.rank); }
};

}  // namespace echelon::inline device
