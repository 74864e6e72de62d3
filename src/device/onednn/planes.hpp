// SPDX-License-Identifier: Apache-2.0
// Loops over an image or volume of any layout as planes of pixels (H x W, D x H x W). A pixel consists of `kLanes`
// neighbouring floats (channels), so that one templated body serves all layouts and vectorises over the lanes.
//
//   plain           planes (n, c) of 1 lane
//   channels_last   planes (n, group of channels) of 16, 8 or 1 lanes, or of 32 if a loop asks for them (32 bf16 are a
//                   cache line); pixels are C floats apart
//   blocked8, 16    planes (n, block) of 8 or 16 lanes, the zero lanes of the last block included
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.hpp"
#include "device/layout.hpp"

namespace echelon::inline device::onednn {

// Largest number of floats that a loop may treat alike at once.
inline constexpr int kMaxLanes = 32;
// Below this many floats a team of threads costs more than it saves.
inline constexpr std::int64_t kParallelElems = 16384;

class Planes {
 public:
  Planes(std::int64_t C, Layout layout, int widest = 16) : C_(C), layout_(layout) {
    switch (layout) {
      case Layout::plain: groups1_ = C; break;
      case Layout::channels_last:
        groups32_ = widest == 32 ? C / 32 : 0;
        groups16_ = (C - groups32_ * 32) / 16;
        groups8_ = C % 16 / 8;
        groups1_ = C % 8;
        break;
      case Layout::blocked8: groups8_ = (C + 7) / 8; break;
      case Layout::blocked16: groups16_ = (C + 15) / 16; break;
    }
  }

  // Number of planes of one sample.
  std::int64_t groups() const { return groups32_ + groups16_ + groups8_ + groups1_; }
  // Distance from a pixel to the next, in floats.
  std::int64_t pixel() const {
    return layout_ == Layout::channels_last ? C_ : layout_ == Layout::plain ? 1 : layout_ == Layout::blocked8 ? 8 : 16;
  }
  bool channels_last() const { return layout_ == Layout::channels_last; }
  // Channels of one block; 1 if the layout has no blocks.
  std::int64_t block() const { return layout_ == Layout::blocked8 ? 8 : layout_ == Layout::blocked16 ? 16 : 1; }
  // Offset in floats of channel c of sample n's first pixel from the tensor's start.
  std::int64_t element(std::int64_t n, std::int64_t c, std::int64_t pixels) const {
    return offset(n, c, pixels) + c % block();
  }
  // Offset in floats of the first pixel of sample n's plane that starts at channel c.
  std::int64_t offset(std::int64_t n, std::int64_t c, std::int64_t pixels) const {
    switch (layout_) {
      case Layout::plain: return (n * C_ + c) * pixels;
      case Layout::channels_last: return n * pixels * C_ + c;
      case Layout::blocked8: return (n * groups8_ + c / 8) * pixels * 8;
      case Layout::blocked16: return (n * groups16_ + c / 16) * pixels * 16;
    }
    return 0;
  }
  // Calls body<kLanes>(first channel) for group g.
  template <class Body>
  void visit(std::int64_t g, Body&& body) const {
    std::int64_t first = 0;
    const auto within = [&](std::int64_t groups, std::int64_t lanes) {
      if (g < groups) return true;
      g -= groups;
      first += groups * lanes;
      return false;
    };
    if (within(groups32_, 32)) return body.template operator()<32>(first + g * 32);
    if (within(groups16_, 16)) return body.template operator()<16>(first + g * 16);
    if (within(groups8_, 8)) return body.template operator()<8>(first + g * 8);
    body.template operator()<1>(first + g);
  }

 private:
  std::int64_t C_;
  Layout layout_;
  std::int64_t groups32_ = 0, groups16_ = 0, groups8_ = 0, groups1_ = 0;
};

// Zeroes the padding in the last block of channels of an activation (N, C, H, W) or (N, C, D, H, W).
template <class T>
void clear_padding(T* y, const Shape& shape, Layout layout) {
  const Planes planes(shape.rank() >= 4 ? shape[1] : 1, layout);
  const std::int64_t block = planes.block(), used = block == 1 ? 0 : shape[1] % block;
  if (used == 0) return;
  const std::int64_t pixels = shape.elems() / (shape[0] * shape[1]);
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    T* last = y + planes.offset(n, shape[1] - 1, pixels);
    for (std::int64_t i = 0; i < pixels; ++i) std::fill(last + i * block + used, last + (i + 1) * block, T{});
  }
}

// Calls body<kLanes>(n, first channel) for every plane of N samples, on `threads` threads if `elems` floats are worth
// it.
template <class Body>
void for_each_plane(int threads, std::int64_t N, const Planes& planes, std::int64_t elems, const Body& body) {
  const std::int64_t groups = planes.groups();
#pragma omp parallel for num_threads(threads) if (threads > 1 && elems >= kParallelElems) schedule(static)
  for (std::int64_t i = 0; i < N * groups; ++i) {
    const std::int64_t n = i / groups;
    planes.visit(i % groups, [&]<int kLanes>(std::int64_t c) { body.template operator()<kLanes>(n, c); });
  }
}

}  // namespace echelon::inline device::onednn
