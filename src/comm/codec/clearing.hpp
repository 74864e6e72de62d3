// Zeros a span block by block before rising places of it are written, so that these are still in the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace echelon::inline comm {

class Clearing {
 public:
  Clearing(float* values, std::int64_t elems) : values_(values), elems_(elems) {}

  void reach(std::uint32_t place) {
    while (cleared_ <= place) next();
  }
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

// Where sums are added to, nothing is cleared.
struct NoClearing {
  void reach(std::uint32_t) {}
  void finish() {}
};

}  // namespace echelon::inline comm
