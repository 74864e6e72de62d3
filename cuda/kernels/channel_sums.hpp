// Images by channel, and how sums over one channel are divided among blocks: `splits` partial sums a channel in double,
// which a few threads a channel then add up in order. It depends on the extents alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/layout.hpp"

namespace echelon::cuda {

// Element (n, c, i) lies at (n*C + c)*elems + i.
struct ChannelExtents {
  std::int64_t N, C, elems;
};

// Images whose channels come last are rows of channels, each an image of one element.
inline ChannelExtents channel_extents(std::int64_t N, std::int64_t C, std::int64_t elems, Layout layout) {
  return layout == Layout::channels_last ? ChannelExtents{N * elems, C, 1} : ChannelExtents{N, C, elems};
}

// A block sums one channel of some images, or, where images have one element, at most kColumns channels of some rows.
inline std::int64_t channel_splits(const ChannelExtents& e) {
  constexpr std::int64_t kBlocks = 1024, kColumns = 256, kRows = 64, kMost = 512;
  if (e.elems == 1)
    return std::clamp<std::int64_t>(kBlocks / ((e.C + kColumns - 1) / kColumns), 1,
                                    std::min<std::int64_t>((e.N + kRows - 1) / kRows, kMost));
  return std::clamp<std::int64_t>(kBlocks / e.C, 1, std::min<std::int64_t>(e.N, kMost));
}

// Scratch of channel_sums for `sums` variables.
inline std::size_t channel_scratch_bytes(const ChannelExtents& e, int sums) {
  return static_cast<std::size_t>(channel_splits(e) * e.C * sums) * sizeof(double);
}

}  // namespace echelon::cuda
