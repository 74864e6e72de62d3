// SPDX-License-Identifier: Apache-2.0
// Contract cases of focal and Dice losses.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> class_loss_specs(DType dtype) {
  std::vector<OpSpec> specs;
  for (ClassLossDims d :
       {ClassLossDims{1, 2}, ClassLossDims{65, 10}, ClassLossDims{33, 17}, ClassLossDims{2, 1}, ClassLossDims{2, 5, 7},
        ClassLossDims{3, 2, 561}, ClassLossDims{1, 1, 16}, ClassLossDims{2, 3, 4099}})
    for (const auto& [loss, gamma] :
         {std::pair(ClassLoss::focal, 0.0), {ClassLoss::focal, 0.5}, {ClassLoss::focal, 2.0}, {ClassLoss::dice, 0.0}})
      for (OpKind kind : {OpKind::loss_class_forward, OpKind::loss_class_join, OpKind::loss_class_backward}) {
        if (kind == OpKind::loss_class_join && loss != ClassLoss::dice) continue;
        d.loss = loss, d.gamma = gamma;
        specs.push_back({kind, dtype, d, {}});
      }
  return specs;
}

std::vector<double> class_loss_input(const InputDraw& draw) {
  if (draw.arg.name == "labels") return draw.integers(0, std::get<ClassLossDims>(draw.spec.dims).K - 1);
  if (draw.arg.name == "weights") return draw.zeros_and_ones();
  if (draw.arg.name == "own" || draw.arg.name == "overlaps") return draw.affine(0.5, 1);
  if (draw.arg.name == "logits") return draw.affine(4, 0);
  if (draw.arg.name == "probs") return draw.affine(0.45, 0.5);
  return draw.any();
}

}  // namespace

OpCases class_loss_cases() { return {.specs = class_loss_specs, .input = class_loss_input}; }

}  // namespace echelon::verify
