// Images moved and mirrored at random: a crop of their own size out of the image with zeros around it, and left and
// right changed (He et al. 2016, section 4.2). What becomes of a sample is a hash of (seed, epoch, sample id), the same
// on any replica.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"

namespace echelon::inline data {

struct Augmentation {
  std::int64_t crop_padding = 0;  // zeros on each side
  bool flip = false;
  std::uint64_t seed = 1;
  bool any() const { return crop_padding > 0 || flip; }
};

class Augmenter {
 public:
  explicit Augmenter(const Augmentation& augmentation)
      : augmentation_(augmentation), rng_(augmentation.seed, "augment") {}
  // (C, H, W) to (C, H, W), normalised values: a zero is the channel's mean. `src` and `dst` do not overlap.
  void operator()(const void* src, void* dst, const Shape& shape, DType dtype, std::int64_t epoch,
                  std::int64_t id) const;

 private:
  Augmentation augmentation_;
  HashRng rng_;
};

}  // namespace echelon::inline data
