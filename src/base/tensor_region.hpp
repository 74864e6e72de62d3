// A hyper-rectangle of a tensor, and its copies from and to the whole. Both row-major without padding.
#pragma once

#include <cstddef>

#include "base/shape.hpp"

namespace echelon::inline base {

struct TensorRegion {
  Shape shape;   // of the part
  Shape whole;   // of the whole tensor, of as many axes
  Shape offset;  // where the part begins, one entry an axis
};

// whole[offset + i] = part[i], or part[i] = whole[offset + i], for every index i of the region; elements of the whole
// outside stay. One memcpy per contiguous run of shape[last] elements. Buffers must not overlap. A failed check where
// ranks differ or the region is not inside the whole.
void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole);
void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part);

}  // namespace echelon::inline base
