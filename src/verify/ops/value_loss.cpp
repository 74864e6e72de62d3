// SPDX-License-Identifier: Apache-2.0
// Contract cases of losses of numbers.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (ValueLoss loss : {ValueLoss::squared, ValueLoss::logistic, ValueLoss::absolute, ValueLoss::hinge})
    for (std::int64_t elems : {1, 17, 129})
      for (bool index : {false, true})
        if (is_of_two(loss) || !index)
          for (OpKind kind : {OpKind::loss_values_forward, OpKind::loss_values_backward})
            specs.push_back({kind, dtype, ValueLossDims{elems, loss, index}, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  if (draw.arg.name == "weights") return draw.zeros_and_ones();
  if (draw.arg.name != "targets") return draw.any();
  std::vector<double> targets = draw.affine(2, 0);
  if (is_of_two(std::get<ValueLossDims>(draw.spec.dims).loss))
    for (double& target : targets) target = target < 0 ? 0 : 1;
  return targets;
}

}  // namespace

OpCases value_loss_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
