// SPDX-License-Identifier: Apache-2.0
// Decodes image files: JPEG by libjpeg, PNG by libpng, told apart by their first bytes; and writes PNG. Pure functions,
// callable from any thread. They throw DataError with the reason if a file cannot be decoded; the caller adds the
// place.
#pragma once

#include <cstdint>
#include <functional>
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

// Height and width in the header, and whether it has colours. DataError as above.
struct ImageHeader {
  std::int64_t height = 0, width = 0;
  bool coloured = false;
};
ImageHeader image_header(std::string_view bytes);

// The rows and columns of an image that are wanted. A JPEG is decoded at 1/2, 1/4 or 1/8 of its size, by means of its
// transform, where both `least_height` and `least_width` of the smaller image's pixels lie in the whole window that is
// resized (`whole_height` x `whole_width`).
struct PartWanted {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  std::int64_t whole_height = 0, whole_width = 0, least_height = 0, least_width = 0;
};
// How many times as small such a JPEG is decoded: 1, 2, 4 or 8.
std::int64_t decoded_smaller(const PartWanted& part);
// Pixels that hold the part, and the position of the first one in the image, which is `shrunk` times as small as the
// file's.
struct DecodedPart {
  Image image;
  std::int64_t top = 0, left = 0, shrunk = 1;
};
// `wanted`: asked with height and width of the image. Damage behind the last row that is wanted is not found.
DecodedPart decode_part(std::string_view bytes, int channels,
                        const std::function<PartWanted(std::int64_t height, std::int64_t width)>& wanted);

// One file per library. decode_png keeps the channels of the file.
Image decode_jpeg(std::string_view bytes, int channels);
DecodedPart decode_jpeg_part(std::string_view bytes, int channels,
                             const std::function<PartWanted(std::int64_t height, std::int64_t width)>& wanted);
ImageHeader jpeg_header(std::string_view bytes);
Image decode_png(std::string_view bytes);
ImageHeader png_header(std::string_view bytes);
// A PNG file of an image of 1 or 3 channels. EnvironmentError if libpng cannot write it.
std::string encode_png(const Image& image);

// Whether the extents in a header are 1 to 65,500 and at most 2^27 pixels in all; a tiny file may claim any size.
bool fair_extents(std::int64_t width, std::int64_t height);
std::string unfair_text(std::int64_t width, std::int64_t height);

// Scales an image until it just covers height x width, and crops the middle to planes (channels, height, width). Equals
// Pillow 10's resize(.., BILINEAR) bit for bit: a triangle filter as wide as max(1, source / destination) pixels on
// either side, horizontally first, with 22-bit weights, rounded to bytes between the passes. The longer side becomes
// the nearest whole number of pixels; the crop begins at floor of half the excess.
void fit_image(const Image& image, int height, int width, std::uint8_t* planes);

}  // namespace echelon::inline data
