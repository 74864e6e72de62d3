// SPDX-License-Identifier: Apache-2.0
// Samples that are stored as the bytes of JPEG or PNG files, and are decoded when a batch is made. Of a large JPEG only
// the part that is seen is decoded, at a smaller size where less is asked for (see decode_part).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "data/resize.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// Prefix sums of the lengths in a shard of encoded images, whose dataset 'bytes' must have so many rows. DataError.
std::vector<std::int64_t> encoded_starts(const h5::Reader& reader);
// The shape (channels, H, W) in the header of image `index` of a file. DataError with both.
Shape encoded_shape(const std::string& path, std::int64_t index, std::string_view bytes, int channels);
// The number of images that are read together: about four megabytes.
std::int64_t encoded_together(std::uint64_t stored_bytes, std::int64_t samples);

// Values of a channel become value * factor + offset.
struct PixelScale {
  std::vector<double> factor, offset;  // [channel]
};
// Decodes the part of an image that `part_of` (height, width) names and writes it to `dst` (C, h, w) of `shape`.
// DataError with the reason if it is damaged.
void see_encoded(std::string_view bytes, const std::function<SeenPart(std::int64_t, std::int64_t)>& part_of,
                 const PixelScale& scale, void* dst, const Shape& shape, DType dtype);

}  // namespace echelon::inline data
