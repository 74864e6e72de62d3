// SPDX-License-Identifier: Apache-2.0
// The same values in another layout or dtype.
//
// kind        inputs   outputs
//   reorder   x        y
#pragma once

#include <optional>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct ReorderDims {
  Shape shape;
  std::optional<DType> from = {};  // dtype of x, any floating dtype; default: the spec's, which is that of y
  friend bool operator==(const ReorderDims&, const ReorderDims&) = default;

  void common(OpDescription& op) const { op.word(shape.text()); }
  void reorder(OpDescription& op) const {
    if (from) op.word(name_of(*from));
    op.word(name_of(op.layout(0))).word("to").word(name_of(op.layout(1)));
    op.in("x", shape, from.value_or(op.dtype())).movable().out("y", shape).movable();
  }
};

}  // namespace echelon::inline device
