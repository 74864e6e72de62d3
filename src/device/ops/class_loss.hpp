// SPDX-License-Identifier: Apache-2.0
// Losses of classes besides cross-entropy: focal loss, and soft Dice loss of whole samples.
//
// kind                    inputs                             outputs                                         scalars
//   loss_class_forward    logits labels weights              probs sums(3) f64 (adds): loss, correct, weight
//   loss_class_backward   probs labels weights               dlogits (adds)                                  scale
// and for dice, whose places may be those of several ranks:
//   loss_class_forward    logits labels weights              probs sums(3): 0, correct, weight; overlaps(N, 2K+1) f64
//   loss_class_join       own overlaps(N, 2K+1), overlaps    sums(3) f64 (adds): loss, 0, 0
//   loss_class_backward   probs labels weights overlaps      dlogits (adds)                                  scale
//
// Shapes, labels, `correct` and `weight` are those of the softmax loss (device/ops/softmax.hpp). p = softmax(logits).
//
//   focal   loss = weight * (1 - p_t)^gamma * -log p_t for the label t of each place (Lin et al. 2017; their alpha is
//           the weight of the class)
//   dice    for a sample n with places i of weight w_i and labels t_i (Milletari et al. 2016, with sums of
//           probabilities in the denominator and 1 added to both, as Keras' U-Nets have it):
//             overlap_k = 2 sum_i w_i p_ik [t_i = k] + 1,  size_k = sum_i w_i (p_ik + [t_i = k]) + 1
//             loss_n = W_n (1 - 1/K sum_k overlap_k / size_k),  W_n = sum_i w_i
//           so that the loss over the weight is the mean over samples, by the weight of their labels. `overlaps` of a
//           sample are overlap_k - 1 and size_k - 1 of each class, and W_n: sums over places, which ranks that hold
//           some of them add up. The own W_n is the share of loss_n that a rank counts.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class ClassLoss : std::uint8_t { focal, dice };

struct ClassLossDims {
  static constexpr bool kInHalves = false;
  std::int64_t N, K;
  std::int64_t P = 1;  // labels of a sample
  ClassLoss loss = ClassLoss::focal;
  double gamma = 0;  // focal
  friend bool operator==(const ClassLossDims&, const ClassLossDims&) = default;

  void common(OpDescription& op) const {
    op.require(gamma >= 0, "an exponent of {} is negative", {gamma});
    op.extents({{"N", N}, {"K", K}}).flag(P > 1, "P", P).flag(loss == ClassLoss::dice, "dice");
    op.flag(loss == ClassLoss::focal, "gamma", gamma);
  }
  void loss_class_forward(OpDescription& op) const {
    op.in("logits", classes()).in("labels", places(), DType::i32).in("weights", places());
    op.out("probs", classes()).out("sums", {3}, DType::f64).adds();
    if (loss == ClassLoss::dice) op.out("overlaps", overlaps(), DType::f64);
  }
  void loss_class_join(OpDescription& op) const {
    op.require(loss == ClassLoss::dice, "only dice has sums over samples");
    op.in("own", overlaps(), DType::f64).in("overlaps", overlaps(), DType::f64);
    op.out("sums", {3}, DType::f64).adds();
  }
  void loss_class_backward(OpDescription& op) const {
    op.in("probs", classes()).in("labels", places(), DType::i32).in("weights", places());
    if (loss == ClassLoss::dice) op.in("overlaps", overlaps(), DType::f64);
    op.out("dlogits", classes()).adds();
  }
  Shape overlaps() const { return {N, 2 * K + 1}; }

 private:
  Shape classes() const { return P > 1 ? Shape{N, K, P} : Shape{N, K}; }
  Shape places() const { return P > 1 ? Shape{N, P} : Shape{N}; }
};

}  // namespace echelon::inline device
