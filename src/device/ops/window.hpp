// SPDX-License-Identifier: Apache-2.0
// Common to the ops with windows over images (conv, pool).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/op_description.hpp"

namespace echelon::inline device {

// Windows (R, S) over an image (H, W), and their numbers in each direction (P, Q).
struct Windows {
  std::int64_t H, W, R, S, P, Q, stride_h, stride_w, pad_h, pad_w;
};

inline void require_windows(OpDescription& op, const Windows& d) {
  op.require(d.pad_h >= 0 && d.pad_w >= 0, "a padding of {}, {} is negative", {d.pad_h, d.pad_w});
  op.require(d.stride_h >= 1 && d.stride_w >= 1, "strides of {}, {} are below 1", {d.stride_h, d.stride_w});
  op.require(d.P >= 1 && d.Q >= 1, "a window of {}x{} does not fit into an image of {}x{}", {d.R, d.S, d.H, d.W});
}

// Returns "3x2".
inline std::string by(std::int64_t h, std::int64_t w) { return std::to_string(h) + "x" + std::to_string(w); }

// Adds "stride 2" or "pad 1x2"; nothing if both values are `usual`.
inline void pair_word(OpDescription& op, std::string_view name, std::int64_t h, std::int64_t w, std::int64_t usual) {
  if (h == usual && w == usual) return;
  if (h == w)
    op.word(name, h);
  else
    op.word(name, by(h, w));
}

}  // namespace echelon::inline device
