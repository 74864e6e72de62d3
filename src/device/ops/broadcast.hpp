// SPDX-License-Identifier: Apache-2.0
// Adds one tensor to every sample, or one number to every channel; and the gradient of that tensor.
//
// kind              inputs            outputs
//   broadcast_add   x(N, ..) w(..)    y = x + w
//   sum_samples     dy(N, ..)         dw(..) (adds): sum of dy over N
//
// With `channels`, w and dw are (C), a number for each channel of x (N, C, ..), and dw sums over all cells of a
// channel. The output y may share the memory of x.
#pragma once

#include "device/op_description.hpp"

namespace echelon::inline device {

struct BroadcastDims {
  Shape shape;  // N is the first axis
  bool channels = false;
  friend bool operator==(const BroadcastDims&, const BroadcastDims&) = default;

  void common(OpDescription& op) const {
    op.require(!channels || shape.rank() >= 2, "a tensor of rank {} has no channels", {std::int64_t{shape.rank()}});
    op.word(shape.text()).flag(channels, "of channels");
  }
  void broadcast_add(OpDescription& op) const {
    moved(op.in("x", shape)).in("w", added()).parameter();
    moved(op.out("y", shape));
  }
  void sum_samples(OpDescription& op) const { moved(op.in("dy", shape)).out("dw", added()).adds().wide(); }
  // Elements of x that take one number of w, next to each other.
  std::int64_t cells() const { return channels ? shape.row_elems() / shape[1] : 1; }
  Shape added() const { return channels ? Shape{shape[1]} : shape.without_front(); }

 private:
  OpDescription& moved(OpDescription& op) const { return channels ? op.movable() : op; }
};

}  // namespace echelon::inline device
