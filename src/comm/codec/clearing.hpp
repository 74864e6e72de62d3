// SPDX-License-Identifier: Apache-2.0
// Used to decode sparse messages. Sets a span to zero in blocks of 4096 values, each just before the first index in it
// is written, so that the block is still in the cache. Indices must rise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace echelon::inline comm {

class Clearing {
 public:
  Clearing(float* values, std::int64_t elems) : values_(values), elems_(elems) {}

  // Afterwards all values up to and including `index` are either zero or were written.
  void reach(std::uint32_t index) {
    while (cleared_ <= index) next();
  }
  // Sets the rest to zero.
  void finish() {
    while (cleared_ < elems_) next();
  }

 private:
  static constexpr std::int64_t kBlock = 4096;

  void next() {
    const std::int64_t n = std::min(kBlock, elems_ - cleared_);
    std::memset(values_ + cleared_, 0, static_cast<std::size_t>(n) * sizeof(float));
    cleared_ += n;
  }

  float* values_;
  std::int64_t elems_, cleared_ = 0;
};

// Used by decode_add, where the values already hold sums and nothing is set to zero.
struct NoClearing {
  void reach(std::uint32_t) {}
  void finish() {}
};

}  // namespace echelon::inline comm
