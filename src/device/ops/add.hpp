// The sum of two tensors of one shape.
//
// kind    inputs   outputs
//   add   a b      y = a + b: may be the very memory of one of the inputs
#pragma once

#include "device/op_description.hpp"

namespace echelon::inline device {

struct ElementwiseDims {
  Shape shape;  // of all arguments
  friend bool operator==(const ElementwiseDims&, const ElementwiseDims&) = default;

  void common(OpDescription& op) const { op.word(shape.text()); }
  void add(OpDescription& op) const { op.in("a", shape).movable().in("b", shape).movable().out("y", shape).movable(); }
};

}  // namespace echelon::inline device
