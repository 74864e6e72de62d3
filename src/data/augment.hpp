// SPDX-License-Identifier: Apache-2.0
// Random crops and flips of training images (He et al. 2016, section 4.2), volumes and series. A crop of the sample's
// size is taken at a uniform offset from the sample with `crop_padding` zeros on each side of every spatial axis; then,
// with probability 1/2, its columns are reversed.
// The draws are a hash of (seed, epoch, sample id), so they are the same on any replica.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"

namespace echelon::inline data {

struct Augmentation {
  std::int64_t crop_padding = 0;  // zeros on each side of every spatial axis; 0: no crop
  bool flip = false;              // mirror left to right
  std::uint64_t seed = 1;
  bool any() const { return crop_padding > 0 || flip; }
};

class Augmenter {
 public:
  explicit Augmenter(const Augmentation& augmentation)
      : augmentation_(augmentation), rng_(augmentation.seed, "augment") {}
  // Writes the augmented sample of `src` to `dst`, both (C, W), (C, H, W) or (C, D, H, W) of `dtype` (f32 or f64),
  // without overlap. Values must
  // already be normalised, so that a zero is the mean of the channel.
  void operator()(const void* src, void* dst, const Shape& shape, DType dtype, std::int64_t epoch,
                  std::int64_t id) const;

 private:
  Augmentation augmentation_;
  HashRng rng_;
};

}  // namespace echelon::inline data
