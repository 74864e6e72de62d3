// SPDX-License-Identifier: Apache-2.0
// A box inside a tensor, and copies between it and the whole tensor. Both are row-major without padding.
#pragma once

#include <cstddef>

#include "base/shape.hpp"

namespace echelon::inline base {

struct TensorRegion {
  Shape shape;   // shape of the part
  Shape whole;   // shape of the whole tensor, with as many axes
  Shape offset;  // start of the part, one entry per axis
};

// For every index i of the region, whole[offset + i] = part[i], or part[i] = whole[offset + i]. Other elements do not
// change. One memcpy per contiguous run of shape[last] elements. Buffers must not overlap. A check fails if the numbers
// of axes differ or the region is not inside the whole.
void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole);
void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part);

}  // namespace echelon::inline base
