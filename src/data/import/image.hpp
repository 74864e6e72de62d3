// Images in files: JPEG by libjpeg, PNG by libpng, told apart by how they begin. Pure functions, any thread. What
// cannot be decoded is a DataError with the reason; the caller knows the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline data {

struct Image {
  int width = 0, height = 0;
  int channels = 0;                  // 1: grey, 2: grey and alpha, 3: red, green, blue, 4: with alpha
  std::vector<std::uint8_t> pixels;  // (height, width, channels)
};

// Decodes into 1 channel (grey) or 3 (red, green, blue). Of 16 bits a channel the nearest of 8 is taken; palettes are
// looked up; what is transparent is laid over white. Grey of a JPEG is its luma, of other colours (19595 R + 38470 G +
// 7471 B + 32768) / 65536. CMYK is refused, as is a file that is damaged or ends early. The orientation that a camera
// notes beside the pixels (EXIF) is not applied, nor are colour profiles.
Image decode_image(std::string_view bytes, int channels);

// One file for each library. decode_png: channels as in the file.
Image decode_jpeg(std::string_view bytes, int channels);
Image decode_png(std::string_view bytes);

// Whether a header's extents are from 1 to 65,500 and at most 2^27 pixels: a file of some bytes may claim any.
bool fair_extents(std::int64_t width, std::int64_t height);
std::string unfair_text(std::int64_t width, std::int64_t height);

// Scales an image so that it just covers height x width, keeping its proportions, and cuts its middle out, into planes
// (channels, height, width). Scaling is that of Pillow 10's resize(.., BILINEAR), bit for bit: a triangle as wide as
// max(1, source / destination) pixels on either side, horizontally first, weights of 22 bits, rounded to bytes between
// the two passes. The longer side becomes the nearest whole number of pixels, the cut begins at floor of half the rest.
void fit_image(const Image& image, int height, int width, std::uint8_t* planes);

}  // namespace echelon::inline data
