// SPDX-License-Identifier: Apache-2.0
// A fully connected layer: y[n,k] = b[k] + sum_f x[n,f] w[k,f].
//
// kind                      inputs    outputs
//   dense_forward           x w [b]   y
//   dense_backward_data     dy w      dx (adds)
//   dense_backward_weights  x dy      dw (adds) [db (adds)]
//
// x (N, F), y (N, K), w (K, F), b (K).
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct DenseDims {
  std::int64_t N, F, K;
  bool bias = true;
  friend bool operator==(const DenseDims&, const DenseDims&) = default;

  void common(OpDescription& op) const {
    op.extents({{"N", N}, {"F", F}, {"K", K}});
    op.flops(2.0 * static_cast<double>(N) * static_cast<double>(F) * static_cast<double>(K));
  }
  void dense_forward(OpDescription& op) const {
    op.flag(!bias, "no bias").in("x", {N, F}).in("w", {K, F}).parameter();
    if (bias) op.in("b", {K}).parameter();
    op.out("y", {N, K});
  }
  void dense_backward_data(OpDescription& op) const {
    op.in("dy", {N, K}).in("w", {K, F}).parameter().out("dx", {N, F}).adds();
  }
  void dense_backward_weights(OpDescription& op) const {
    op.flag(!bias, "no bias").in("x", {N, F}).in("dy", {N, K}).out("dw", {K, F}).adds().wide();
    if (bias) op.out("db", {K}).adds().wide();
  }
};

}  // namespace echelon::inline device
