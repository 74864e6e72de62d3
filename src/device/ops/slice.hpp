// SPDX-License-Identifier: Apache-2.0
// A range of the channels of an image.
//
// kind      inputs   outputs
//   slice   x        y (adds)
//
// y (N, count, H, W) = channels [first, first + count) of x (N, C, H, W). With `indices` both are i32, and y does not
// add.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct SliceDims {
  std::int64_t N, C, H, W, first, count;
  bool indices = false;
  friend bool operator==(const SliceDims&, const SliceDims&) = default;

  void common(OpDescription& op) const {
    op.require(first >= 0 && count >= 1 && first + count <= C, "channels [{}, {}) are not in [0, {})",
               {first, first + count, C});
    op.extents({{"N", N}, {"C", C}, {"H", H}, {"W", W}}).word("from", first).word("to", first + count);
    op.flag(indices, "of indices");
  }
  void slice(OpDescription& op) const {
    const Shape x{N, C, H, W}, y{N, count, H, W};
    if (indices)
      op.in("x", x, DType::i32).out("y", y, DType::i32);
    else
      op.in("x", x).movable().out("y", y).adds().movable();
  }
};

}  // namespace echelon::inline device
