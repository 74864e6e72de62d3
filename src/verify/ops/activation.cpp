// SPDX-License-Identifier: Apache-2.0
// Contract cases of activations.
#include <algorithm>
#include <limits>
#include <utility>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape :
       {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{2, 32, 6, 6}, Shape{2, 9, 3, 4, 5}, Shape{3, 500}, Shape{7}})
    for (const auto& [function, a] : {std::pair{Activation::relu, 0.0},
                                      {Activation::tanh, 0.0},
                                      {Activation::sigmoid, 0.0},
                                      {Activation::gelu, 0.0},
                                      {Activation::leaky_relu, 0.2},
                                      {Activation::elu, 0.7},
                                      {Activation::softplus, 0.0},
                                      {Activation::scale, -1.5}})
      for (OpKind kind : {OpKind::activation_forward, OpKind::activation_backward})
        specs.push_back({kind, dtype, ActivationDims{shape, function, a}, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const Activation function = std::get<ActivationDims>(draw.spec.dims).function;
  if (draw.spec.kind != OpKind::activation_backward || draw.arg.name != "y") return draw.any();
  if (function == Activation::sigmoid) return draw.affine(0.5, 0.5);
  std::vector<double> y = draw.any();
  const double least = function == Activation::relu || function == Activation::softplus ? 0
                       : function == Activation::elu ? -std::get<ActivationDims>(draw.spec.dims).a
                                                     : std::numeric_limits<double>::lowest();
  for (double& value : y) value = std::max(least, value);
  return y;
}

}  // namespace

OpCases activation_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
