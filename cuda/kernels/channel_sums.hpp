// How sums over one channel of (N, C, elems) are divided among blocks: `splits` blocks a channel, each leaving partial
// sums in double, which one thread a channel then adds up in order. It depends on the extents alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace echelon::cuda {

inline std::int64_t channel_splits(std::int64_t N, std::int64_t C) {
  constexpr std::int64_t kBlocks = 1024;
  return std::clamp<std::int64_t>(kBlocks / C, 1, std::min<std::int64_t>(N, 128));
}

// Scratch of channel_sums for `sums` variables.
inline std::size_t channel_scratch_bytes(std::int64_t N, std::int64_t C, int sums) {
  return static_cast<std::size_t>(channel_splits(N, C) * C * sums) * sizeof(double);
}

}  // namespace echelon::cuda
