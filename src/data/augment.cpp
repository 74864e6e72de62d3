// SPDX-License-Identifier: Apache-2.0
#include "data/augment.hpp"

#include <algorithm>

namespace echelon::inline data {
namespace {

struct Move {
  std::int64_t back, down, right;  // position of the window; if negative, zeros enter in front, above or at the left
  bool flip;
};

template <class T>
void move_plane(const T* src, T* dst, std::int64_t height, std::int64_t width, const Move& move) {
  for (std::int64_t h = 0; h < height; ++h, dst += width) {
    const std::int64_t from = h + move.down;
    std::fill(dst, dst + width, T{});
    if (from < 0 || from >= height) continue;
    const std::int64_t begin = std::max<std::int64_t>(0, -move.right);
    const std::int64_t end = std::min(width, width - move.right);
    if (begin < end)
      std::copy(src + from * width + begin + move.right, src + from * width + end + move.right, dst + begin);
    if (move.flip) std::reverse(dst, dst + width);
  }
}

}  // namespace

void Augmenter::operator()(const void* src, void* dst, const Shape& shape, DType dtype, std::int64_t epoch,
                           std::int64_t id) const {
  const HashRng draws = rng_.at(static_cast<std::uint64_t>(epoch)).at(static_cast<std::uint64_t>(id));
  const std::int64_t padding = augmentation_.crop_padding;
  const auto shift = [&](std::uint64_t draw) {
    return static_cast<std::int64_t>(draws.below(draw, static_cast<std::uint64_t>(2 * padding + 1))) - padding;
  };
  const int axes = shape.rank() - 1;
  const Move move{axes > 2 ? shift(3) : 0, axes > 1 ? shift(0) : 0, shift(1),
                  augmentation_.flip && draws.below(2, 2) == 1};
  const std::int64_t depth = axes > 2 ? shape[1] : 1, height = axes > 1 ? shape[axes - 1] : 1, width = shape[axes];
  const std::int64_t plane = height * width;
  with_float(dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(src);
    T* to = static_cast<T*>(dst);
    for (std::int64_t c = 0; c < shape[0]; ++c, from += depth * plane)
      for (std::int64_t z = 0; z < depth; ++z, to += plane) {
        const std::int64_t slice = z + move.back;
        if (slice >= 0 && slice < depth)
          move_plane(from + slice * plane, to, height, width, move);
        else
          std::fill(to, to + plane, T{});
      }
  });
}

}  // namespace echelon::inline data
