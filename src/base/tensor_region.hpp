// SPDX-License-Identifier: Apache-2.0
// A box inside a tensor, and copies between it and the whole tensor. Both are row-major without padding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/shape.hpp"

namespace echelon::inline base {

struct TensorRegion {
  Shape shape;   // shape of the part
  Shape whole;   // shape of the whole tensor, with as many axes
  Shape offset;  // start of the part, one entry per axis
};

// Returns how many elements lie together in both: the innermost axes that the part has whole, and the one before them.
inline std::int64_t run_elems(const TensorRegion& region) {
  int axis = region.shape.rank() - 1;
  std::int64_t elems = axis < 0 ? 1 : region.shape[axis];
  while (axis > 0 && region.shape[axis] == region.whole[axis]) elems *= region.shape[--axis];
  return elems;
}

// Calls run(offset in the part, offset in the whole, bytes) for each run of run_elems() elements. A check fails if the
// numbers of axes differ or the region is not inside the whole.
template <class Run>
void for_each_run(const TensorRegion& region, std::size_t elem_bytes, Run&& run) {
  const int rank = region.shape.rank();
  ECHELON_CHECK(region.whole.rank() == rank && region.offset.rank() == rank, "a region of {} in {}",
                region.shape.text(), region.whole.text());
  for (int axis = 0; axis < rank; ++axis)
    ECHELON_CHECK(region.offset[axis] >= 0 && region.offset[axis] + region.shape[axis] <= region.whole[axis],
                  "a region of {} in {}", region.shape.text(), region.whole.text());
  if (region.shape.elems() == 0) return;
  const std::int64_t elems = run_elems(region);
  int outer = rank;  // the first axis inside a run
  for (std::int64_t inside = 1; outer > 0 && inside < elems; --outer) inside *= region.shape[outer - 1];
  std::array<std::int64_t, Shape::kMaxRank> at{};
  for (std::int64_t part = 0; part < region.shape.elems(); part += elems) {
    std::int64_t index = 0;
    for (int axis = 0; axis < rank; ++axis)
      index = index * region.whole[axis] + region.offset[axis] + at[static_cast<std::size_t>(axis)];
    run(static_cast<std::size_t>(part) * elem_bytes, static_cast<std::size_t>(index) * elem_bytes,
        static_cast<std::size_t>(elems) * elem_bytes);
    for (int axis = outer - 1; axis >= 0 && ++at[static_cast<std::size_t>(axis)] == region.shape[axis]; --axis)
      at[static_cast<std::size_t>(axis)] = 0;
  }
}

// For every index i of the region, whole[offset + i] = part[i], or part[i] = whole[offset + i]. Other elements do not
// change. One memcpy per run. Buffers must not overlap.
void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole);
void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part);

}  // namespace echelon::inline base
