// SPDX-License-Identifier: Apache-2.0
// Images by channel, and the division of sums over one channel among blocks: `splits` partial sums per channel in
// double, which a few threads per channel then add in order. It depends only on the extents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/layout.hpp"

namespace echelon::cuda {

// Element (n, c, i) is at (n*C + c)*elems + i.
struct ChannelExtents {
  std::int64_t N, C, elems;
};

// Images with channels last are rows of channels; each row is treated as an image of one element.
inline ChannelExtents channel_extents(std::int64_t N, std::int64_t C, std::int64_t elems, Layout layout) {
  return layout == Layout::channels_last ? ChannelExtents{N * elems, C, 1} : ChannelExtents{N, C, elems};
}

// A block sums one channel of some images or, if images have one element, at most kColumns channels of some rows.
inline std::int64_t channel_splits(const ChannelExtents& e) {
  constexpr std::int64_t kBlocks = 1024, kColumns = 256, kRows = 64, kMost = 512;
  if (e.elems == 1)
    return std::clamp<std::int64_t>(kBlocks / ((e.C + kColumns - 1) / kColumns), 1,
                                    std::min<std::int64_t>((e.N + kRows - 1) / kRows, kMost));
  return std::clamp<std::int64_t>(kBlocks / e.C, 1, std::min<std::int64_t>(e.N, kMost));
}

// The scratch size of channel_sums for `sums` variables.
inline std::size_t channel_scratch_bytes(const ChannelExtents& e, int sums) {
  return static_cast<std::size_t>(channel_splits(e) * e.C * sums) * sizeof(double);
}

}  // namespace echelon::cuda
