// SPDX-License-Identifier: Apache-2.0
// The sum of two tensors of one shape, optionally with a ReLU, and the gradient through that ReLU.
//
// kind           inputs     outputs
//   add          a b        y = a + b; with relu max(0, a + b)
//   masked_add   mask a b   y = a + b where mask > 0, else 0: the gradient of a ReLU's input, where mask is its output
//                           and a + b the gradient of that. In f16 a sum beyond 65504 becomes infinite, unless masked.
//
// y may share the memory of an input. Both kinds give the bits of add and activation one after the other, because
// rounding and max(.., 0) can be exchanged.
#pragma once

#include "device/op_description.hpp"

namespace echelon::inline device {

struct ElementwiseDims {
  Shape shape;        // shape of all arguments
  bool relu = false;  // only for add
  friend bool operator==(const ElementwiseDims&, const ElementwiseDims&) = default;

  void common(OpDescription& op) const { op.word(shape.text()).flag(relu, "relu"); }
  void add(OpDescription& op) const {
    sum(op);
    if (relu) op.flops(two_an_element());
  }
  void masked_add(OpDescription& op) const {
    op.require(!relu, "a masked_add cannot have a relu").in("mask", shape).movable();
    sum(op);
    op.flops(two_an_element());
  }

 private:
  void sum(OpDescription& op) const { op.in("a", shape).movable().in("b", shape).movable().out("y", shape).movable(); }
  double two_an_element() const { return 2 * static_cast<double>(shape.elems()); }
};

}  // namespace echelon::inline device
