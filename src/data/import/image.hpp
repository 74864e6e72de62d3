// SPDX-License-Identifier: Apache-2.0
// Decodes image files: JPEG by libjpeg, PNG by libpng, told apart by their first bytes. Pure functions, callable from
// any thread. They throw DataError with the reason if a file cannot be decoded; the caller adds the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline data {

struct Image {
  int width = 0, height = 0;
  int channels = 0;                  // 1: grey, 2: grey and alpha, 3: red, green, blue, 4: red, green, blue and alpha
  std::vector<std::uint8_t> pixels;  // (height, width, channels)
};

// Decodes into 1 channel (grey) or 3 (red, green, blue). 16-bit channels are rounded to 8 bits, palettes are looked up,
// and transparent pixels are blended over white. Grey is the luma of a JPEG, and (19595 R + 38470 G + 7471 B + 32768) /
// 65536 of other colours. Refuses CMYK, and files that are damaged or end early. The orientation that a camera stores
// (EXIF) and colour profiles are not applied.
Image decode_image(std::string_view bytes, int channels);

// One file per library. decode_png keeps the channels of the file.
Image decode_jpeg(std::string_view bytes, int channels);
Image decode_png(std::string_view bytes);

// Whether the extents in a header are 1 to 65,500 and at most 2^27 pixels in all; a tiny file may claim any size.
bool fair_extents(std::int64_t width, std::int64_t height);
std::string unfair_text(std::int64_t width, std::int64_t height);

// Scales an image until it just covers height x width, and crops the middle to planes (channels, height, width). Equals
// Pillow 10's resize(.., BILINEAR) bit for bit: a triangle filter as wide as max(1, source / destination) pixels on
// either side, horizontally first, with 22-bit weights, rounded to bytes between the passes. The longer side becomes
// the nearest whole number of pixels; the crop begins at floor of half the excess.
void fit_image(const Image& image, int height, int width, std::uint8_t* planes);

}  // namespace echelon::inline data
