// SPDX-License-Identifier: Apache-2.0
// Mirrors and quarter turns of images and volumes: a permutation of the spatial axes, then mirrored axes.
#pragma once

#include <array>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "config/augment_keys.hpp"

namespace echelon::inline data {

// dst[z, y, x] = src at the place whose coordinate along axis from[a] is that of dst along a, counted from the end
// where mirrored[a]. Axes are D, H, W.
struct Turn {
  std::array<int, 3> from = {0, 1, 2};
  std::array<bool, 3> mirrored = {false, false, false};
  friend bool operator==(const Turn&, const Turn&) = default;
};

// Draws a rotation (of the four of "plane", or the 24 of "cube"), then mirrors of rows and slices.
Turn random_turn(const AugmentKeys& keys, const HashRng& draws);

// Axes that are exchanged must be equally long. `src` and `dst` do not overlap.
void turn(const Turn& turn, const void* src, void* dst, const Shape& shape, DType dtype);

}  // namespace echelon::inline data
