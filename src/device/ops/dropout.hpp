// SPDX-License-Identifier: Apache-2.0
// Dropout: zeros at random indices, drawn from (seed, node, step, sample, element), independent of the position in a
// batch.
//
// kind        inputs           outputs    scalars
//   dropout   x ids(N) i32     y (adds)   key
//
//   y = x / (1 - rate) where HashRng(key).at(ids[n]).uniform(i) >= rate, else 0
//
// i counts the elements of the whole sample in plain order; ids are the indices of the samples in the whole data set
// (their low 32 bits); key is a hash of (seed, node, step). The op is linear in x, so its backward is the same op on
// dy.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct DropoutDims {
  Shape shape;             // N is the first axis
  double rate;             // fraction of zeros, in [0, 1)
  std::int64_t first = 0;  // index of the first of these elements in the whole sample
  std::int64_t plane = 0;  // elements of the whole sample from one channel to the next; 0: as many as here
  // Number of elements of `shape` that are contiguous in the whole sample: all, or those of a channel.
  std::int64_t run() const { return plane == 0 ? shape.row_elems() : shape.row_elems() / shape[1]; }
  friend bool operator==(const DropoutDims&, const DropoutDims&) = default;

  void common(OpDescription& op) const {
    op.require(rate >= 0 && rate < 1, "a dropout rate of {} is not in [0, 1)", {rate});
    op.word(shape.text()).word("rate", rate).flag(first > 0, "from", first);
    op.flag(plane > 0, "of " + std::to_string(plane) + " a channel");
  }
  void dropout(OpDescription& op) const {
    op.in("x", shape).movable().in("ids", {shape[0]}, DType::i32).out("y", shape).adds().movable();
  }
};

}  // namespace echelon::inline device
