// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/shape.hpp"

namespace echelon::inline data {

// The part of an image that the model sees in evaluation, and in training without random-resized crops: the shorter
// side is resized to `resize`, and the centre of height x width is taken (torchvision's Resize and CenterCrop).
struct ImageView {
  std::int64_t height = 0, width = 0;  // 0: images as they are stored
  std::int64_t resize = 0;
  bool any() const { return height > 0; }
  // The shape of the images that the model sees.
  Shape shape_of(const Shape& stored) const { return any() ? Shape{stored[0], height, width} : stored; }
  friend bool operator==(const ImageView&, const ImageView&) = default;
};

}  // namespace echelon::inline data
