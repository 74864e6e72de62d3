// SPDX-License-Identifier: Apache-2.0
// Contract cases of softmax losses.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const SoftmaxDims& d :
       {SoftmaxDims{1, 2}, SoftmaxDims{5, 10}, SoftmaxDims{65, 10}, SoftmaxDims{3, 1000}, SoftmaxDims{33, 17},
        SoftmaxDims{2, 1}, SoftmaxDims{33, 17, 0.1}, SoftmaxDims{4, 3, 0.75}, SoftmaxDims{2, 5, 0, 7},
        SoftmaxDims{3, 2, 0.1, 561}, SoftmaxDims{1, 1, 0, 16}})
    for (OpKind kind : {OpKind::loss_softmax_forward, OpKind::loss_softmax_backward})
      specs.push_back({kind, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  if (draw.arg.name == "labels") return draw.integers(0, std::get<SoftmaxDims>(draw.spec.dims).K - 1);
  if (draw.arg.name == "weights") return draw.zeros_and_ones();
  if (draw.arg.name == "logits") return draw.affine(4, 0);
  if (draw.arg.name == "probs") return draw.affine(0.5, 0.5);
  return draw.any();
}

}  // namespace

OpCases softmax_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
