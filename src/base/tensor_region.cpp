// SPDX-License-Identifier: Apache-2.0
#include "base/tensor_region.hpp"

#include <array>
#include <cstring>

#include "base/check.hpp"

namespace echelon::inline base {
namespace {

// Calls copy(offset in the part, offset in the whole, bytes) for each run that is contiguous in both.
template <class Copy>
void for_each_run(const TensorRegion& region, std::size_t elem_bytes, Copy&& copy) {
  const int rank = region.shape.rank();
  ECHELON_CHECK(region.whole.rank() == rank && region.offset.rank() == rank, "a region of {} in {}",
                region.shape.text(), region.whole.text());
  for (int axis = 0; axis < rank; ++axis)
    ECHELON_CHECK(region.offset[axis] >= 0 && region.offset[axis] + region.shape[axis] <= region.whole[axis],
                  "a region of {} in {}", region.shape.text(), region.whole.text());
  if (region.shape.elems() == 0) return;
  const std::int64_t run = rank == 0 ? 1 : region.shape[rank - 1];
  std::array<std::int64_t, Shape::kMaxRank> at{};
  for (std::int64_t part = 0; part < region.shape.elems(); part += run) {
    std::int64_t index = 0;
    for (int axis = 0; axis < rank; ++axis)
      index = index * region.whole[axis] + region.offset[axis] + at[static_cast<std::size_t>(axis)];
    copy(static_cast<std::size_t>(part) * elem_bytes, static_cast<std::size_t>(index) * elem_bytes,
         static_cast<std::size_t>(run) * elem_bytes);
    for (int axis = rank - 2; axis >= 0 && ++at[static_cast<std::size_t>(axis)] == region.shape[axis]; --axis)
      at[static_cast<std::size_t>(axis)] = 0;
  }
}

}  // namespace

void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole) {
  for_each_run(region, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(whole) + in_whole, static_cast<const std::byte*>(part) + in_part, bytes);
  });
}

void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part) {
  for_each_run(region, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(part) + in_part, static_cast<const std::byte*>(whole) + in_whole, bytes);
  });
}

}  // namespace echelon::inline base
