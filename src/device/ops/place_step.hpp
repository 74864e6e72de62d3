// SPDX-License-Identifier: Apache-2.0
// Puts the rows of one step at their place in sequences.
//
// kind           inputs               outputs
//   place_step   x(N,F) [lengths]     y(N,T,F) (in part): step t of y is x, and 0 where first + t >= length
//
// lengths (N) i32 are those of whole sequences; y begins with step `first` of them.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct PlaceStepDims {
  static constexpr bool kInHalves = false;
  std::int64_t N, T, F, t;
  bool lengths = false;
  std::int64_t first = 0;
  friend bool operator==(const PlaceStepDims&, const PlaceStepDims&) = default;

  void common(OpDescription& op) const {
    op.require(t >= 0 && t < T, "step {} is not in [0, {})", {t, T});
    op.extents({{"N", N}, {"T", T}}).word("step", t).extents({{"F", F}});
    op.flag(lengths, "lengths").flag(lengths && first != 0, "from", first);
    op.one_step();
  }
  void place_step(OpDescription& op) const { op.in("x", {N, F}).lengths(lengths, N).out("y", {N, T, F}).in_part(); }
};

}  // namespace echelon::inline device
