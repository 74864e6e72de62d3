// SPDX-License-Identifier: Apache-2.0
// The part of each sample and label that a rank reads where several ranks share a sample (parallel.space).
#pragma once

#include <cstdint>

#include "base/shape.hpp"

namespace echelon::inline data {

// Indices [begin, end) along one axis of a sample or label, without N; end 0: all of it.
struct SlabRange {
  int axis = 0;
  std::int64_t begin = 0, end = 0;
  bool any() const { return end > 0; }
  std::int64_t count() const { return end - begin; }
  // The same range where `front` axes come before.
  SlabRange behind(int front) const { return {axis + front, begin, end}; }
  Shape shape_of(const Shape& whole) const { return any() ? whole.with(axis, count()) : whole; }
  friend bool operator==(const SlabRange&, const SlabRange&) = default;
};

struct Slab {
  SlabRange samples, labels;
  bool any() const { return samples.any() || labels.any(); }
  friend bool operator==(const Slab&, const Slab&) = default;
};

}  // namespace echelon::inline data
