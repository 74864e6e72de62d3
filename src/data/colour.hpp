// SPDX-License-Identifier: Apache-2.0
// Colour jitter of training images (Howard 2013), with the formulas of torchvision's ColorJitter. Values v in [0, 1]:
//   brightness   f v                        contrast   f v + (1 - f) mean grey of the image
//   saturation   f v + (1 - f) grey         hue        the hue of HSV turned by f
// each clamped to [0, 1], in a random order; f of the first three is uniform in [max(0, 1 - x), 1 + x], of hue in
// [-x, x]. Grey is 0.2989 R + 0.587 G + 0.114 B, or the value itself with one channel.
#pragma once

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "config/augment_keys.hpp"

namespace echelon::inline data {

// Changes `image` (C, H, W) with C = 1 or 3 and values in [0, 1] in place.
void jitter_colours(const AugmentKeys& keys, const HashRng& draws, void* image, const Shape& shape, DType dtype);

}  // namespace echelon::inline data
