// SPDX-License-Identifier: Apache-2.0
// Convolution: cross-correlation with zero padding.
//
//   y[n,k,p,q] = b[k] + sum_{c,r,s} x[n, c, p*stride - pad + r*dil, q*stride - pad + s*dil] w[k,c,r,s]
//
// kind                     inputs       outputs
//   conv_forward           x w [b]      y
//   conv_backward_data     dy w         dx (adds)
//   conv_backward_weights  x dy         dw (adds) [db (adds)]
//
// x (N, C, H, W), y (N, K, P, Q), w (K, C/groups, R, S), b (K). With `groups`, the output channels of a group depend
// only on the input channels of that group.
#pragma once

#include <cstdint>

#include "base/dims.hpp"
#include "device/op_description.hpp"
#include "device/ops/window.hpp"

namespace echelon::inline device {

struct ConvDims {
  std::int64_t N, C, H, W, K, R, S;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
  bool bias = true;
  std::int64_t P() const { return window_extent(H, R, stride_h, pad_h, dil_h); }
  std::int64_t Q() const { return window_extent(W, S, stride_w, pad_w, dil_w); }
  friend bool operator==(const ConvDims&, const ConvDims&) = default;

  void common(OpDescription& op) const {
    op.require(groups >= 1 && C % groups == 0 && K % groups == 0,
               "{} groups do not divide {} input and {} output channels", {groups, C, K});
    require_windows(op, {H, W, R, S, P(), Q(), stride_h, stride_w, pad_h, pad_w});
    op.extents({{"N", N}, {"C", C}, {"H", H}, {"W", W}, {"K", K}}).word(by(R, S));
    pair_word(op, "stride", stride_h, stride_w, 1);
    pair_word(op, "pad", pad_h, pad_w, 0);
    pair_word(op, "dil", dil_h, dil_w, 1);
    if (groups > 1) op.word("groups", groups);
    op.flops(2 * (static_cast<double>(N * K * P() * Q()) * static_cast<double>(C / groups * R * S)));
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

 private:
  Shape x() const { return {N, C, H, W}; }
  Shape y() const { return {N, K, P(), Q()}; }
  Shape w() const { return {K, C / groups, R, S}; }
};

}  // namespace echelon::inline device
