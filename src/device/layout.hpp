// SPDX-License-Identifier: Apache-2.0
// The order of the elements of an activation (N, C, H, W) or (N, C, D, H, W) in memory. A volume lies in memory as an
// image with D*H rows.
//
// `plain` is row-major, the only layout at cuts between ranks, in arenas, in checkpoints, and for tensors that are
// neither images nor volumes. A pass over the program chooses the others where a device's ops run faster in them
// (Device::layouts); reorders between them are ops of the program. Parameters are always plain: an op that needs packed
// weights packs them itself, once per parameter version (OpArgs::parameter_version).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/shape.hpp"

namespace echelon::inline device {

enum class Layout : std::uint8_t {
  plain,
  channels_last,  // (N, H, W, C)
  blocked8,       // (N, ceil(C/8), H, W, 8), zero-filled channels at the end
  blocked16,      // (N, ceil(C/16), H, W, 16)
};

constexpr std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::plain: return "plain";
    case Layout::channels_last: return "channels_last";
    case Layout::blocked8: return "blocked8";
    case Layout::blocked16: return "blocked16";
  }
  return "?";
}

// The elements that a tensor takes in memory, padding included.
inline std::int64_t stored_elems(const Shape& shape, Layout layout) {
  const std::int64_t block = layout == Layout::blocked8 ? 8 : layout == Layout::blocked16 ? 16 : 1;
  if (block == 1 || shape.rank() < 4) return shape.elems();
  return shape.elems() / (shape[1] > 0 ? shape[1] : 1) * ((shape[1] + block - 1) / block * block);
}

// Whether two shapes (N, C, spatial axes) are the same memory in every layout: a volume may be an op's image.
inline bool same_in_layouts(const Shape& a, const Shape& b) {
  return a.rank() >= 4 && b.rank() >= 4 && a[0] == b[0] && a[1] == b[1] && a.elems() == b.elems();
}

}  // namespace echelon::inline device
