// SPDX-License-Identifier: Apache-2.0
// Pooling: the maximum or the mean of each window of a channel.
//
// kind              inputs        outputs
//   pool_forward    x             y (+ saved)
//   pool_backward   dy (+ saved)  dx (adds)
//
// x (N, C, H, W), y (N, C, P, Q). max ignores padding; among equal maxima the first in row-major order gets the
// gradient. An average divides by the number of the window's cells inside the image (average_inside) or by R*S
// (average_all). With `relu`, y = max(0, maximum), which is the max pool of ReLUs; where y = 0, no element gets the
// gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dims.hpp"
#include "device/op_description.hpp"
#include "device/ops/window.hpp"

namespace echelon::inline device {

enum class PoolMode : std::uint8_t { max, average_inside, average_all };
struct PoolDims {
  std::int64_t N, C, H, W, R, S;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  PoolMode mode = PoolMode::max;
  bool relu = false;            // only for a max pool
  std::int64_t more_below = 0;  // rows of padding below the image in addition to pad_h; negative: fewer
  std::int64_t P() const { return window_extent(H + more_below, R, stride_h, pad_h); }
  std::int64_t Q() const { return window_extent(W, S, stride_w, pad_w); }
  friend bool operator==(const PoolDims&, const PoolDims&) = default;

  void common(OpDescription& op) const {
    const std::int64_t below = pad_h + more_below;
    require_windows(op, {H, W, R, S, P(), Q(), stride_h, stride_w, pad_h, pad_w});
    op.require(below >= 0 && std::max(pad_h, below) < R && pad_w < S,
               "a padding of {} rows above, {} below and {} columns does not fit windows of {}x{}",
               {pad_h, below, pad_w, R, S});
    op.require(!relu || mode == PoolMode::max, "only a max pool can include a ReLU");
    op.extents({{"N", N}, {"C", C}, {"H", H}, {"W", W}});
    op.word(mode == PoolMode::max ? "max" : mode == PoolMode::average_inside ? "average inside" : "average all");
    op.word(by(R, S));
    pair_word(op, "stride", stride_h, stride_w, 1);
    pair_word(op, "pad", pad_h, pad_w, 0);
    if (more_below != 0) op.word("below", below);
    op.flag(relu, "relu");
    op.flops(static_cast<double>(N * C * P() * Q()) * static_cast<double>(R * S));
  }
  void pool_forward(OpDescription& op) const { op.in("x", x()).movable().out("y", y()).movable(); }
  void pool_backward(OpDescription& op) const { op.in("dy", y()).movable().out("dx", x()).adds().movable(); }

 private:
  Shape x() const { return {N, C, H, W}; }
  Shape y() const { return {N, C, P(), Q()}; }
};

}  // namespace echelon::inline device
