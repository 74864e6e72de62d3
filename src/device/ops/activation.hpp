// SPDX-License-Identifier: Apache-2.0
// A function of each element: y = f(x), dx = f'(x) dy.
//
// kind                    inputs           outputs
//   activation_forward    x                y
//   activation_backward   y dy (gelu: x)   dx (adds)
//
// relu, tanh and sigmoid have f' as a function of y; gelu is x Phi(x) with the exact error function (Hendrycks, Gimpel
// 2016), and its backward reads x. An output that does not add may share the memory of an input.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class Activation : std::uint8_t { relu, tanh, sigmoid, gelu };
struct ActivationDims {
  Shape shape;  // shape of all arguments
  Activation function = Activation::relu;
  friend bool operator==(const ActivationDims&, const ActivationDims&) = default;

  void common(OpDescription& op) const { op.word(name()).word(shape.text()); }
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
    }
    return "?";
  }
};

}  // namespace echelon::inline device
