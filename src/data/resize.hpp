// SPDX-License-Identifier: Apache-2.0
// Images of another size: windows of an image, resized bilinearly as torchvision's functional does on tensors with
// antialias = False. The centre of pixel i of n lies at (i + 1/2) / n; beyond the centres at the window's edges the
// values of the edge are used. Smaller images are samples of the larger one and are not averaged.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "data/image_view.hpp"

namespace echelon::inline data {

struct ImageWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  friend bool operator==(const ImageWindow&, const ImageWindow&) = default;
};

// Draws a window of a random share of the area and a random width / height, log-uniform, as torchvision's
// RandomResizedCrop: ten attempts, then the largest central window whose ratio is in range.
ImageWindow random_window(const HashRng& draws, std::int64_t height, std::int64_t width, double least_scale,
                          double most_scale, double least_ratio, double most_ratio);

// Resizes `window` of the image `src` (C, H, W) to `full` and writes the part of it from (top, left) of full.height x
// full.width to `dst` (C, h, w).
struct Resized {
  std::int64_t height = 0, width = 0;  // of the whole resized window
  std::int64_t top = 0, left = 0;      // part that is written
};
void resize(const void* src, const Shape& src_shape, const ImageWindow& window, const Resized& full, void* dst,
            const Shape& dst_shape, DType dtype);

// The view of an image in evaluation.
void central_view(const void* src, const Shape& src_shape, const ImageView& view, void* dst, DType dtype);

}  // namespace echelon::inline data
