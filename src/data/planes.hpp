// SPDX-License-Identifier: Apache-2.0
// The axes of a sample (C, W), (C, H, W) or (C, D, H, W) as four, and boxes of its places.
#pragma once

#include <array>
#include <cstdint>

#include "base/shape.hpp"

namespace echelon::inline data {

struct Planes {
  std::int64_t channels = 1, depth = 1, height = 1, width = 1;
  std::int64_t elems() const { return channels * depth * height * width; }
  std::array<std::int64_t, 3> extents() const { return {depth, height, width}; }
};

inline Planes planes_of(const Shape& shape) {
  const int axes = shape.rank() - 1;
  return {.channels = shape[0],
          .depth = axes > 2 ? shape[1] : 1,
          .height = axes > 1 ? shape[axes - 1] : 1,
          .width = shape[axes]};
}

// A box of slices, rows and columns: half-open ranges, inside the sample.
struct Box {
  std::array<std::int64_t, 3> begin{}, end{};
  std::int64_t places() const { return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]); }
};

// Calls run(offset, count) for each run of elements that lies in the box, in all channels.
template <class Run>
void each_run(const Planes& planes, const Box& box, const Run& run) {
  if (box.places() == 0) return;
  for (std::int64_t c = 0; c < planes.channels; ++c)
    for (std::int64_t z = box.begin[0]; z < box.end[0]; ++z)
      for (std::int64_t y = box.begin[1]; y < box.end[1]; ++y)
        run(((c * planes.depth + z) * planes.height + y) * planes.width + box.begin[2], box.end[2] - box.begin[2]);
}

}  // namespace echelon::inline data
