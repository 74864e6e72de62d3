// SPDX-License-Identifier: Apache-2.0
// Parts of training samples that become 0, the mean of a normalised channel.
#pragma once

#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "config/augment_keys.hpp"
#include "data/planes.hpp"

namespace echelon::inline data {

// The rectangle of random erasing (Zhong et al. 2020) in an image, as torchvision's RandomErasing draws it: ten
// attempts, each with a share of the area and a log-uniform height / width. Empty with probability 1 - keys.erase.
Box erased_box(const AugmentKeys& keys, const HashRng& draws, const Planes& planes);

// The square, or cube, of cutout (DeVries, Taylor 2017) with sides keys.cutout around a place that is uniform in the
// sample; the part outside is cut off. Axes of the sample's `shape` only.
Box cutout_box(const AugmentKeys& keys, const HashRng& draws, const Shape& shape);

}  // namespace echelon::inline data
