// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy, the loss of classes.
//
// kind                      inputs                 outputs                                            scalars
//   loss_softmax_forward    logits labels weights  probs sums(3) f64 (adds): loss, correct, weight
//   loss_softmax_backward   probs labels weights   dlogits (adds)                                     scale
//
// logits, probs (N, K) or (N, K, P); labels (N) or (N, P) i32 in [0, K), others are refused by the loader; weights have
// the shape of labels. P counts the places of a sample (pixels) that have a label each; n runs over samples and places.
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
  std::int64_t P = 1;    // labels of a sample
  friend bool operator==(const SoftmaxDims&, const SoftmaxDims&) = default;

  void common(OpDescription& op) const {
    op.require(smoothing >= 0 && smoothing < 1, "a label smoothing of {} is not in [0, 1)", {smoothing});
    op.extents({{"N", N}, {"K", K}}).flag(smoothing > 0, "smoothing", smoothing).flag(P > 1, "P", P);
  }
  void loss_softmax_forward(OpDescription& op) const {
    op.in("logits", classes()).in("labels", places(), DType::i32).in("weights", places());
    op.out("probs", classes()).out("sums", {3}, DType::f64).adds();
  }
  void loss_softmax_backward(OpDescription& op) const {
    op.in("probs", classes()).in("labels", places(), DType::i32).in("weights", places());
    op.out("dlogits", classes()).adds();
  }

 private:
  Shape classes() const { return P > 1 ? Shape{N, K, P} : Shape{N, K}; }
  Shape places() const { return P > 1 ? Shape{N, P} : Shape{N}; }
};

}  // namespace echelon::inline device
