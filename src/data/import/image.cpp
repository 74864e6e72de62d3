// SPDX-License-Identifier: Apache-2.0
#include "data/import/image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kMostSide = 65500, kMostPixels = std::int64_t{1} << 27;

std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
}

// Blends a value over white, rounded.
std::uint8_t laid_over_white(std::uint8_t value, std::uint8_t alpha) {
  return static_cast<std::uint8_t>((value * unsigned{alpha} + 255U * (255U - alpha) + 127U) / 255U);
}

Image converted(const Image& from, int channels) {
  if (from.channels == channels) return from;
  Image to{.width = from.width, .height = from.height, .channels = channels, .pixels = {}};
  const std::size_t pixels = static_cast<std::size_t>(from.width) * static_cast<std::size_t>(from.height);
  to.pixels.resize(pixels * static_cast<std::size_t>(channels));
  const bool coloured = from.channels >= 3, alpha = from.channels % 2 == 0;
  const std::uint8_t* src = from.pixels.data();
  std::uint8_t* dst = to.pixels.data();
  for (std::size_t i = 0; i < pixels; ++i, src += from.channels, dst += channels) {
    std::uint8_t rgb[3];
    for (int c = 0; c < 3; ++c) {
      const std::uint8_t value = src[coloured ? c : 0];
      rgb[c] = alpha ? laid_over_white(value, src[from.channels - 1]) : value;
    }
    if (channels == 1)
      dst[0] = coloured ? grey_of(rgb) : rgb[0];
    else
      std::copy(rgb, rgb + 3, dst);
  }
  return to;
}

std::string beginning(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 4)) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// JPEG or PNG; DataError for anything else.
bool is_jpeg(std::string_view bytes) {
  if (bytes.empty()) throw DataError("is empty");
  if (bytes.starts_with("\xff\xd8\xff")) return true;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return false;
  throw DataError(fmt::format("is neither JPEG nor PNG: it begins with 0x{}", beginning(bytes)));
}

}  // namespace

bool fair_extents(std::int64_t width, std::int64_t height) {
  return width >= 1 && height >= 1 && width <= kMostSide && height <= kMostSide && width * height <= kMostPixels;
}

std::string unfair_text(std::int64_t width, std::int64_t height) {
  return fmt::format("its header claims {} x {} pixels, but at most {} per side and {} in all are read", width, height,
                     kMostSide, kMostPixels);
}

Image decode_image(std::string_view bytes, int channels) {
  return is_jpeg(bytes) ? decode_jpeg(bytes, channels) : converted(decode_png(bytes), channels);
}

ImageHeader image_header(std::string_view bytes) { return is_jpeg(bytes) ? jpeg_header(bytes) : png_header(bytes); }

DecodedPart decode_part(std::string_view bytes, int channels,
                        const std::function<PartWanted(std::int64_t height, std::int64_t width)>& wanted) {
  if (is_jpeg(bytes)) return decode_jpeg_part(bytes, channels, wanted);
  DecodedPart part{.image = converted(decode_png(bytes), channels)};
  static_cast<void>(wanted(part.image.height, part.image.width));
  return part;
}

}  // namespace echelon::inline data
