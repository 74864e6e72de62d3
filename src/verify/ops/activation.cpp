// SPDX-License-Identifier: Apache-2.0
// Contract cases of activations.
#include <algorithm>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{2, 32, 6, 6}, Shape{3, 500}, Shape{7}})
    for (Activation function : {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::gelu})
      for (OpKind kind : {OpKind::activation_forward, OpKind::activation_backward})
        specs.push_back({kind, dtype, ActivationDims{shape, function}, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const Activation function = std::get<ActivationDims>(draw.spec.dims).function;
  if (draw.spec.kind != OpKind::activation_backward || draw.arg.name != "y") return draw.any();
  if (function == Activation::sigmoid) return draw.affine(0.5, 0.5);
  std::vector<double> y = draw.any();
  if (function == Activation::relu)
    for (double& value : y) value = std::max(0.0, value);
  return y;
}

}  // namespace

OpCases activation_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
