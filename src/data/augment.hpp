// SPDX-License-Identifier: Apache-2.0
// Random changes of training images, volumes and series, in this order: the crop that the model sees (resize.hpp),
// shifts and mirrored columns, other mirrors and rotations (turn.hpp), colours (colour.hpp), erased parts (erase.hpp).
//
// Shifts (He et al. 2016, section 4.2) take a window of the sample's size at a uniform offset from the sample with
// `crop_padding` zeros on each side of every spatial axis; then, with probability 1/2, its columns are reversed.
// All draws are hashes of (seed, epoch, sample id), so they are the same on any replica.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "config/schema.hpp"
#include "data/encoded.hpp"
#include "data/resize.hpp"

namespace echelon::inline data {

struct Augmentation {
  std::int64_t crop_padding = 0;  // zeros on each side of every spatial axis; 0: no crop
  bool flip = false;              // mirror left to right
  AugmentKeys keys = {};
  std::uint64_t seed = 1;
  bool moves() const { return crop_padding > 0 || flip; }
  bool any() const { return moves() || keys != AugmentKeys{}; }
  // The passes that write a sample anew; `sees`: the first one takes the part that the model sees.
  int passes(bool sees) const { return (sees ? 1 : 0) + (moves() ? 1 : 0) + (keys.turns() ? 1 : 0); }
};

Augmentation augmentation_of(const DataConfig& config, std::uint64_t seed);

// [channel]: values times std plus mean are in [0, 1], for colours.
struct ColourScale {
  std::vector<double> mean, std;
};

// Not thread-safe: has memory for intermediate images.
class Augmenter {
 public:
  explicit Augmenter(const Augmentation& augmentation, const ImageView& view = {}, ColourScale scale = {})
      : augmentation_(augmentation),
        view_(view),
        scale_(std::move(scale)),
        rng_(augmentation.seed, "augment"),
        changes_(augmentation.any()) {}
  bool any() const { return changes_ || view_.any(); }
  // Writes the augmented sample of `src` to `dst` without overlap. `src` is (C, W), (C, H, W) or (C, D, H, W) of
  // `dtype` (f32 or f64), `dst` of the view's shape. Values must already be normalised, so that a zero is the mean of
  // the channel.
  void operator()(const void* src, void* dst, const Shape& shape, DType dtype, std::int64_t epoch, std::int64_t id);
  // The same from the bytes of an encoded image. Without a view it must have the height and width of `shape`. DataError
  // with the reason if it is damaged or has another size.
  void encoded(std::string_view bytes, const PixelScale& pixels, void* dst, const Shape& shape, DType dtype,
               std::int64_t epoch, std::int64_t id);

 private:
  SeenPart part_of(const HashRng& draws, std::int64_t height, std::int64_t width) const;
  template <class See>
  void change(const HashRng& draws, const void* src, void* dst, const Shape& shape, DType dtype, bool sees,
              const See& see);
  void jitter(const HashRng& draws, void* image, const Shape& shape, DType dtype) const;
  void erase(const HashRng& draws, void* sample, const Shape& shape, DType dtype) const;

  Augmentation augmentation_;
  ImageView view_;
  ColourScale scale_;
  HashRng rng_;
  bool changes_;
  std::vector<double> between_[2];  // samples between two steps
};

}  // namespace echelon::inline data
