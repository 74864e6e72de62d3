// SPDX-License-Identifier: Apache-2.0
// Makes images and archives of them as files in memory, by means of the image libraries.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace echelon::test {

// Colour types, numbered as in PNG.
enum class PngColour { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };
struct PngKind {
  PngColour colour = PngColour::rgb;
  int depth = 8;  // bits per value
  bool interlaced = false;
  std::vector<std::uint8_t> palette{};  // red, green, blue per entry
  std::vector<std::uint8_t> alpha{};    // opacity of the first entries of the palette
};
// `rows` (height, bytes per row) is as PNG stores it: values below 8 bits packed, 16-bit ones high byte first.
std::string png_file(int width, int height, const PngKind& kind, const std::vector<std::uint8_t>& rows);

// `pixels` is (height, width, channels): 1 is grey, 3 are red, green, blue, 4 are CMYK.
std::string jpeg_file(int width, int height, int channels, const std::vector<std::uint8_t>& pixels, int quality = 90,
                      bool progressive = false);

// Smooth random content (height, width, channels), which JPEG changes little.
std::vector<std::uint8_t> soft_pixels(int width, int height, int channels, const std::string& name);
// A JPEG (odd `number`) or PNG of random odd extents: in turn grey, coloured, 16-bit, with a palette, with alpha.
std::string any_image(int number, const std::string& name);

// Returns a tar archive (ustar) with these members, as WebDataset writes it.
std::string tar_file(const std::vector<std::pair<std::string, std::string>>& members);

void put_file(const std::string& path, const std::string& content);  // makes the folders too
std::string file_content(const std::string& path);

}  // namespace echelon::test
