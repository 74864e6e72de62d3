// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels (Krizhevsky et al. 2012), alpha as in PyTorch.
//
// kind             inputs   outputs
//   lrn_forward    x        y
//   lrn_backward   x dy     dx (adds)
//
//   y = x s^-beta, s = k + alpha/size * sum of x^2 over the channels [c - size/2, c + (size-1)/2] that exist
//
// All arguments (N, C, H, W).
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct LrnDims {
  std::int64_t N, C, H, W, size;
  double alpha = 1e-4, beta = 0.75, k = 1;
  friend bool operator==(const LrnDims&, const LrnDims&) = default;

  void common(OpDescription& op) const {
    op.require(size >= 1, "a window of {} channels is too small", {size});
    op.extents({{"N", N}, {"C", C}, {"H", H}, {"W", W}}).word("size", size);
    op.word("alpha", alpha).word("beta", beta).word("k", k);
  }
  void lrn_forward(OpDescription& op) const { op.in("x", x()).movable().out("y", x()).movable(); }
  void lrn_backward(OpDescription& op) const {
    op.in("x", x()).movable().in("dy", x()).movable().out("dx", x()).adds().movable();
  }

 private:
  Shape x() const { return {N, C, H, W}; }
};

}  // namespace echelon::inline device
