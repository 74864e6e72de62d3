// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy, the loss of classes.
//
// kind                      inputs                 outputs                                            scalars
//   loss_softmax_forward    logits labels weights  probs sums(3) f64 (adds): loss, correct, weight
//   loss_softmax_backward   probs labels weights   dlogits (adds)                                     scale
//
// logits, probs (N, K); labels (N) i32 in [0, K), others are refused by the loader; weights (N) of the samples.
//
//   loss_n = weight_n * sum_k target_k * (logsumexp(logits_n) - logits_n[k])
//   target_k = smoothing/K, plus 1 - smoothing at the label (Szegedy et al. 2015)
//   dlogits = scale * weight_n * (probs - target)
//
// `correct` sums weight_n where the first maximum is the label. If dlogits does not add, it may share the memory of
// probs.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct SoftmaxDims {
  static constexpr bool kInHalves = false;
  std::int64_t N, K;
  double smoothing = 0;  // label smoothing, in [0, 1)
  friend bool operator==(const SoftmaxDims&, const SoftmaxDims&) = default;

  void common(OpDescription& op) const {
    op.require(smoothing >= 0 && smoothing < 1, "a label smoothing of {} is not in [0, 1)", {smoothing});
    op.extents({{"N", N}, {"K", K}}).flag(smoothing > 0, "smoothing", smoothing);
  }
  void loss_softmax_forward(OpDescription& op) const {
    op.in("logits", {N, K}).in("labels", {N}, DType::i32).in("weights", {N});
    op.out("probs", {N, K}).out("sums", {3}, DType::f64).adds();
  }
  void loss_softmax_backward(OpDescription& op) const {
    op.in("probs", {N, K}).in("labels", {N}, DType::i32).in("weights", {N}).out("dlogits", {N, K}).adds();
  }
};

}  // namespace echelon::inline device
