// SPDX-License-Identifier: Apache-2.0
// Losses of numerical targets: squared and absolute error, and logistic and hinge loss of independent yes/no targets.
//
// kind                     inputs                     outputs                                      scalars
//   loss_values_forward    x targets(E) weights(E)    sums(3) f64 (adds): loss, correct, weight
//   loss_values_backward   x targets(E) weights(E)    dx (adds)                                    scale
//
//   squared    loss_e = weight_e * (x_e - t_e)^2; correct is 0
//   logistic   x are logits: loss_e = weight_e * (max(x,0) - x t + log(1 + exp(-|x|))); correct sums weight_e where
//              x > 0 and t > 1/2 agree
//   absolute   loss_e = weight_e * |x_e - t_e|, whose slope at 0 is 0; correct is 0
//   hinge      loss_e = weight_e * max(0, 1 - s x), s = 1 for t > 1/2 and else -1 (targets -1 and 1, or 0 and 1);
//              correct sums weight_e where x > 0 and s > 0 agree
//
// x (E). Targets are real or, with `index_targets`, i32 of 0 and 1.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class ValueLoss : std::uint8_t { squared, logistic, absolute, hinge };
// Whether the targets are yes or no.
constexpr bool is_of_two(ValueLoss loss) { return loss == ValueLoss::logistic || loss == ValueLoss::hinge; }
constexpr const char* name_of(ValueLoss loss) {
  switch (loss) {
    case ValueLoss::squared: return "squared";
    case ValueLoss::logistic: return "logistic";
    case ValueLoss::absolute: return "absolute";
    case ValueLoss::hinge: return "hinge";
  }
  return "?";
}

struct ValueLossDims {
  static constexpr bool kInHalves = false;
  std::int64_t elems;  // E
  ValueLoss loss = ValueLoss::squared;
  bool index_targets = false;
  friend bool operator==(const ValueLossDims&, const ValueLossDims&) = default;

  void common(OpDescription& op) const {
    op.word(name_of(loss), elems).flag(index_targets, "of indices");
    op.in("x", {elems}).in("targets", {elems}, index_targets ? DType::i32 : op.dtype()).in("weights", {elems});
  }
  void loss_values_forward(OpDescription& op) const { op.out("sums", {3}, DType::f64).adds(); }
  void loss_values_backward(OpDescription& op) const { op.out("dx", {elems}).adds(); }
};

}  // namespace echelon::inline device
