// SPDX-License-Identifier: Apache-2.0
// A function of each element: y = f(x), dx = f'(x) dy.
//
// kind                    inputs           outputs
//   activation_forward    x                y
//   activation_backward   y dy (gelu: x)   dx (adds)
//
// f' is a function of y, except for gelu, x Phi(x) with the exact error function (Hendrycks, Gimpel 2016), whose
// backward reads x. An output that does not add may share the memory of an input. With the number a of the op:
//
//   leaky_relu  x or, below 0, a x (Maas et al. 2013)            elu    x or, below 0, a (e^x - 1) (Clevert et al.
//   2015) softplus    ln(1 + e^x)                                     scale  a x
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class Activation : std::uint8_t { relu, tanh, sigmoid, gelu, leaky_relu, elu, softplus, scale };
struct ActivationDims {
  Shape shape;  // shape of all arguments
  Activation function = Activation::relu;
  double a = 0;  // leaky_relu, elu: at least 0; scale
  friend bool operator==(const ActivationDims&, const ActivationDims&) = default;

  void common(OpDescription& op) const {
    const bool slopes = function == Activation::leaky_relu || function == Activation::elu;
    op.require(!slopes || a >= 0, "the slope {} of negative values is negative", {a});
    op.word(name());
    if (slopes || function == Activation::scale) op.word("a", a);
    op.word(shape.text());
  }
  void activation_forward(OpDescription& op) const { op.in("x", shape).movable().out("y", shape).movable(); }
  void activation_backward(OpDescription& op) const {
    op.in(function == Activation::gelu ? "x" : "y", shape).movable().in("dy", shape).movable();
    op.out("dx", shape).adds().movable();
  }

 private:
  const char* name() const {
    switch (function) {
      case Activation::relu: return "relu";
      case Activation::tanh: return "tanh";
      case Activation::sigmoid: return "sigmoid";
      case Activation::gelu: return "gelu";
      case Activation::leaky_relu: return "leaky_relu";
      case Activation::elu: return "elu";
      case Activation::softplus: return "softplus";
      case Activation::scale: return "scale";
    }
    return "?";
  }
};

}  // namespace echelon::inline device
