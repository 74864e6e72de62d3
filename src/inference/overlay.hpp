// SPDX-License-Identifier: Apache-2.0
// Draws what a model with a class for every place says about one sample, for people.
#pragma once

#include <cstdint>

#include "base/shape.hpp"
#include "data/import/image.hpp"

namespace echelon::inline inference {

struct PlacesOfSample {
  Shape shape;                            // of the sample: (C, H, W) or (C, D, H, W)
  const float* values = nullptr;          // (shape)
  Shape places;                           // (h, w) or (d, h, w), which cover the sample
  const std::int32_t* classes = nullptr;  // (places), as predicted
  const std::int32_t* labels = nullptr;   // (places); null: the sample has none
  const float* label_weights = nullptr;   // (places), 0: the label does not count; null as labels
};

// Whether samples of this shape with such places can be drawn: images and volumes.
bool can_overlay(const Shape& sample, const Shape& places);

// Returns an image of 3 channels of the places, or of the middle slice of a volume's, which is enlarged by a whole
// number if it is small. Below, the sample: three channels as red, green and blue, else the first one in grey, with the
// 1st percentile of the slice in black and the 99th in white. Above, half transparent, the colour of the predicted
// class: plot_colour(k - 1) for class k; class 0 (background) has none. Each region of a label other than 0 that counts
// has an outline in the colour of its class.
Image overlay_of(const PlacesOfSample& sample);

}  // namespace echelon::inline inference
