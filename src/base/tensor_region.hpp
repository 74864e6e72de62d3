// A part of a tensor: a region of the whole.
#pragma once

#include <cstddef>

#include "base/shape.hpp"

namespace echelon::inline base {

struct TensorRegion {
  Shape shape;   // of the part
  Shape whole;   // of the whole tensor, of as many axes
  Shape offset;  // where the part begins, one entry an axis
};

// Both plain, of elements of so many bytes.
void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole);
void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part);

}  // namespace echelon::inline base
