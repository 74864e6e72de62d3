// SPDX-License-Identifier: Apache-2.0
// Adds one tensor to every sample; and the gradient of that tensor.
//
// kind              inputs            outputs
//   broadcast_add   x(N, ..) w(..)    y = x + w
//   sum_samples     dy(N, ..)         dw(..) (adds): sum of dy over N
#pragma once

#include "device/op_description.hpp"

namespace echelon::inline device {

struct BroadcastDims {
  Shape shape;  // N is the first axis
  friend bool operator==(const BroadcastDims&, const BroadcastDims&) = default;

  void common(OpDescription& op) const { op.word(shape.text()); }
  void broadcast_add(OpDescription& op) const {
    op.in("x", shape).in("w", shape.without_front()).parameter().out("y", shape);
  }
  void sum_samples(OpDescription& op) const { op.in("dy", shape).out("dw", shape.without_front()).adds().wide(); }
};

}  // namespace echelon::inline device
