// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy whose classes are spread over ranks (Shoeybi et al. 2019); softmax.hpp has the loss itself.
//
// kind                           inputs                        outputs                                        scalars
//   loss_softmax_part            logits labels                 partials(N, 4)
//   loss_softmax_join            partials(N, 4*parts) weights  norms(N) sums(3) f64 (adds): loss, correct, weight
//   loss_softmax_part_backward   logits norms labels weights   dlogits (adds)                                 scale
//
// logits (N, K) are those of the classes [first, first + K) of `classes`; labels (N) i32 refer to all classes. The
// partials of a sample are: the largest logit of this part; 1 if the label is the first such logit, else 0; the sum of
// exp(logit - largest); and the sum of target * logit of this part. The partials of all parts, in order, give norm =
// logsumexp of all logits, so that loss, correct and the gradient, which uses exp(logit - norm), are those of the whole
// softmax.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct SoftmaxPartDims {
  static constexpr bool kInHalves = false;
  static constexpr std::int64_t kPartials = 4;  // values per sample
  std::int64_t N, K, first, classes, parts;
  double smoothing = 0;  // label smoothing, in [0, 1)
  friend bool operator==(const SoftmaxPartDims&, const SoftmaxPartDims&) = default;

  void common(OpDescription& op) const {
    op.require(first + K <= classes, "classes [{}, {}) are not in [0, {})", {first, first + K, classes});
    op.extents({{"N", N}, {"K", K}}).word("from", first).word("of", classes).word("in", parts);
    op.flag(smoothing > 0, "smoothing", smoothing);
  }
  void loss_softmax_part(OpDescription& op) const {
    op.in("logits", {N, K}).in("labels", {N}, DType::i32).out("partials", {N, kPartials});
  }
  void loss_softmax_join(OpDescription& op) const {
    op.in("partials", {N, kPartials * parts}).in("weights", {N}).out("norms", {N}).out("sums", {3}, DType::f64).adds();
  }
  void loss_softmax_part_backward(OpDescription& op) const {
    op.in("logits", {N, K}).in("norms", {N}).in("labels", {N}, DType::i32).in("weights", {N});
    op.out("dlogits", {N, K}).adds();
  }
};

}  // namespace echelon::inline device
