// SPDX-License-Identifier: Apache-2.0
#include "data/encoded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/image.hpp"

namespace echelon::inline data {

std::vector<std::int64_t> encoded_starts(const h5::Reader& reader) {
  const auto fail = [&](const std::string& what) { throw DataError(fmt::format("{}: {}", reader.path(), what)); };
  const h5::DatasetInfo bytes = reader.info(sample_format::kBytes), lengths = reader.info(sample_format::kLengths);
  if (bytes.shape.rank() != 1 || bytes.dtype != DType::u8)
    fail(fmt::format("dataset 'bytes' has shape {}, must be (all) of 8-bit unsigned integers", bytes.shape.text()));
  if (lengths.shape.rank() != 1 || lengths.shape[0] < 1)
    fail(fmt::format("dataset 'lengths' has shape {}, must be (N)", lengths.shape.text()));
  reader.require_written(sample_format::kBytes);
  reader.require_written(sample_format::kLengths);
  std::vector<std::int32_t> each(static_cast<std::size_t>(lengths.shape[0]));
  reader.read_all(sample_format::kLengths, each.data(), DType::i32);
  std::vector<std::int64_t> starts(1, 0);
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i] < 1) fail(fmt::format("record {} has {} bytes in 'lengths', must be 1 or more", i, each[i]));
    starts.push_back(starts.back() + each[i]);
  }
  if (starts.back() != bytes.shape[0])
    fail(fmt::format("'lengths' add up to {} bytes, but {} are stored", starts.back(), bytes.shape[0]));
  return starts;
}

Shape encoded_shape(const std::string& path, std::int64_t index, std::string_view bytes, int channels) try {
  const ImageHeader header = image_header(bytes);
  return {channels, header.height, header.width};
} catch (const DataError& error) {
  throw DataError(fmt::format("{}: record {} {}", path, index, error.what()));
}

std::int64_t encoded_together(std::uint64_t stored_bytes, std::int64_t samples) {
  constexpr double kTogetherBytes = 4 << 20;
  const double each = static_cast<double>(stored_bytes) / static_cast<double>(std::max<std::int64_t>(samples, 1));
  const auto fitting = static_cast<std::int64_t>(kTogetherBytes / std::max(each, 1.0));
  return std::clamp<std::int64_t>(fitting, 1, std::min<std::int64_t>(std::max<std::int64_t>(samples, 1), 256));
}

void see_encoded(std::string_view bytes, const std::function<SeenPart(std::int64_t, std::int64_t)>& part_of,
                 const PixelScale& scale, void* dst, const Shape& shape, DType dtype) {
  SeenPart part;
  const DecodedPart decoded =
      decode_part(bytes, static_cast<int>(shape[0]), [&](std::int64_t height, std::int64_t width) -> PartWanted {
        part = part_of(height, width);
        const ImageWindow pixels = pixels_of(part, shape[1], shape[2]);
        return {.top = pixels.top,
                .left = pixels.left,
                .height = pixels.height,
                .width = pixels.width,
                .whole_height = part.window.height,
                .whole_width = part.window.width,
                .least_height = part.full.height,
                .least_width = part.full.width};
      });
  const Image& image = decoded.image;
  resize_bytes({.pixels = image.pixels.data(),
                .height = image.height,
                .width = image.width,
                .channels = image.channels,
                .top = decoded.top,
                .left = decoded.left,
                .shrunk = decoded.shrunk},
               part, scale.factor, scale.offset, dst, shape, dtype);
}

}  // namespace echelon::inline data
