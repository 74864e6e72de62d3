// SPDX-License-Identifier: Apache-2.0
// Images of another size: windows of an image, resized as torchvision does on tensors with antialias = True, bilinearly
// and with a triangle filter as wide as the step between pixels where the image shrinks. The centre of pixel i of n
// lies at (i + 1/2) / n; pixels beyond the window have no weight.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "data/image_view.hpp"

namespace echelon::inline data {

struct ImageWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  friend bool operator==(const ImageWindow&, const ImageWindow&) = default;
};

// Bounds of a random share of the area, and of a random width / height, which is log-uniform.
struct RectangleRange {
  double least_scale = 1, most_scale = 1, least_ratio = 1, most_ratio = 1;
};
// Draws a rectangle in height x width in ten attempts, as torchvision does; none if none fits. `smaller`: it must not
// be as high or as wide as the image.
std::optional<ImageWindow> random_rectangle(const HashRng& draws, std::int64_t height, std::int64_t width,
                                            const RectangleRange& range, bool smaller);
// Draws a window as torchvision's RandomResizedCrop: a rectangle, else the largest central window whose ratio is in
// range.
ImageWindow random_window(const HashRng& draws, std::int64_t height, std::int64_t width, const RectangleRange& range);

// The size of a whole resized window, and the first row and column of the part of it that is made.
struct Resized {
  std::int64_t height = 0, width = 0;
  std::int64_t top = 0, left = 0;
};

// A window of an image, resized, of which a part is made: what a model sees.
struct SeenPart {
  ImageWindow window;
  Resized full;
};

// Resizes `window` of the image `src` (C, H, W) to `full` and writes the part of it from (top, left) on to `dst` (C, h,
// w).
void resize(const void* src, const Shape& src_shape, const ImageWindow& window, const Resized& full, void* dst,
            const Shape& dst_shape, DType dtype);

// The part of an image that is seen in evaluation.
SeenPart central_part(std::int64_t height, std::int64_t width, const ImageView& view);
void central_view(const void* src, const Shape& src_shape, const ImageView& view, void* dst, DType dtype);

// Rows and columns of the image from which the part of height x width is made.
ImageWindow pixels_of(const SeenPart& part, std::int64_t height, std::int64_t width);

// 8-bit pixels (height, width, channels) of an image that is `shrunk` times as small; the first one is at (top, left).
struct BytePixels {
  const std::uint8_t* pixels = nullptr;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t top = 0, left = 0, shrunk = 1;
};
// Resizes such pixels, which hold pixels_of(part, ..), and writes value * factor[c] + offset[c] to `dst` (C, h, w).
// `part` is of the whole image.
void resize_bytes(const BytePixels& src, const SeenPart& part, const std::vector<double>& factor,
                  const std::vector<double>& offset, void* dst, const Shape& dst_shape, DType dtype);

}  // namespace echelon::inline data
