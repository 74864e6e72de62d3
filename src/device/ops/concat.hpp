// SPDX-License-Identifier: Apache-2.0
// Concatenation: the channels of several images, one behind the other.
//
// kind       inputs                 outputs
//   concat   x0 .. xn (channels)    y
//
// xi (N, Ci, H, W), y (N, sum of Ci, H, W).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

#include "device/op_description.hpp"

namespace echelon::inline device {

// The largest number of inputs of one concat.
inline constexpr int kMaxConcat = 7;

struct ConcatDims {
  std::int64_t N, H, W;
  std::array<std::int64_t, kMaxConcat> channels;  // number per input; 0 behind the last one
  int inputs() const { return static_cast<int>(std::find(channels.begin(), channels.end(), 0) - channels.begin()); }
  // Channels of the output.
  std::int64_t C() const { return std::accumulate(channels.begin(), channels.end(), std::int64_t{0}); }
  friend bool operator==(const ConcatDims&, const ConcatDims&) = default;

  void common(OpDescription& op) const {
    op.require(inputs() >= 1, "a concat needs at least one input");
    std::string sum;
    for (int i = 0; i < inputs(); ++i)
      sum += (i == 0 ? "C" : "+") + std::to_string(channels[static_cast<std::size_t>(i)]);
    op.extents({{"N", N}}).word(sum).extents({{"H", H}, {"W", W}});
  }
  void concat(OpDescription& op) const {
    static constexpr std::string_view kNames[kMaxConcat] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6"};
    for (std::size_t i = 0; i < static_cast<std::size_t>(inputs()); ++i)
      op.in(kNames[i], {N, channels[i], H, W}).movable();
    op.out("y", {N, C(), H, W}).movable();
  }
};

}  // namespace echelon::inline device
