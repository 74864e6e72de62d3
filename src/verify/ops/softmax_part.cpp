// SPDX-License-Identifier: Apache-2.0
// Contract cases of softmax losses whose classes are split.
#include <cmath>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const SoftmaxPartDims& d :
       {SoftmaxPartDims{1, 2, 0, 2, 1}, SoftmaxPartDims{5, 10, 20, 33, 3}, SoftmaxPartDims{65, 10, 0, 40, 4},
        SoftmaxPartDims{3, 1000, 1000, 2000, 2}, SoftmaxPartDims{33, 17, 3, 20, 2, 0.1},
        SoftmaxPartDims{4, 1, 2, 3, 3, 0.75}, SoftmaxPartDims{40, 1500, 700, 2200, 2, 0.1}})
    for (OpKind kind : {OpKind::loss_softmax_part, OpKind::loss_softmax_join, OpKind::loss_softmax_part_backward})
      specs.push_back({kind, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  if (draw.arg.name == "labels") return draw.integers(0, std::get<SoftmaxPartDims>(draw.spec.dims).classes - 1);
  if (draw.arg.name == "weights") return draw.zeros_and_ones();
  if (draw.arg.name == "logits") return draw.affine(4, 0);
  if (draw.arg.name != "partials") return draw.any();
  std::vector<double> partials = draw.affine(3, 0);  // per label: any logit, 0 or 1, a sum from 1, any product
  for (std::size_t i = 1; i < partials.size(); i += SoftmaxPartDims::kPartials) partials[i] = partials[i] < 0 ? 0 : 1;
  for (std::size_t i = 2; i < partials.size(); i += SoftmaxPartDims::kPartials)
    partials[i] = 1 + std::fabs(partials[i]);
  return partials;
}

}  // namespace

OpCases softmax_part_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
