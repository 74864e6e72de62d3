// SPDX-License-Identifier: Apache-2.0
// Reduces a sequence to one row: the sum or mean over its positions t < length, or the last one, x[length - 1].
//
// kind                       inputs                outputs
//   sequence_pool_forward    x [lengths(N) i32]    y
//   sequence_pool_backward   dy [lengths(N) i32]   dx (adds)
//
// x (N, T, F), y (N, F). Without lengths every sequence has T positions.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class SequencePool : std::uint8_t { sum, mean, last };
struct SequencePoolDims {
  std::int64_t N, T, F;
  SequencePool mode = SequencePool::mean;
  bool lengths = false;
  friend bool operator==(const SequencePoolDims&, const SequencePoolDims&) = default;

  void common(OpDescription& op) const {
    op.extents({{"N", N}, {"T", T}, {"F", F}});
    op.word(mode == SequencePool::sum ? "sum" : mode == SequencePool::mean ? "mean" : "last").flag(lengths, "lengths");
  }
  void sequence_pool_forward(OpDescription& op) const { op.in("x", {N, T, F}).lengths(lengths, N).out("y", {N, F}); }
  void sequence_pool_backward(OpDescription& op) const {
    op.in("dy", {N, F}).lengths(lengths, N).out("dx", {N, T, F}).adds();
  }
};

}  // namespace echelon::inline device
