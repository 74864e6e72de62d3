// Images and archives of them as files in memory, made by the libraries themselves.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace echelon::test {

// Colour types as PNG numbers them.
enum class PngColour { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };
struct PngKind {
  PngColour colour = PngColour::rgb;
  int depth = 8;  // bits of a value
  bool interlaced = false;
  std::vector<std::uint8_t> palette{};  // red, green, blue of each entry
  std::vector<std::uint8_t> alpha{};    // of the palette's first entries
};
// `rows`: (height, bytes of a row) as PNG stores them: values of less than 8 bits packed, of 16 bits high byte first.
std::string png_file(int width, int height, const PngKind& kind, const std::vector<std::uint8_t>& rows);

// `pixels` (height, width, channels): 1 grey, 3 red, green, blue, 4 CMYK.
std::string jpeg_file(int width, int height, int channels, const std::vector<std::uint8_t>& pixels, int quality = 90,
                      bool progressive = false);

// Soft random content (height, width, channels), as JPEG keeps it.
std::vector<std::uint8_t> soft_pixels(int width, int height, int channels, const std::string& name);
// A JPEG (odd `number`) or PNG of random odd extents, in turn grey, coloured, of 16 bits, with a palette, with alpha.
std::string any_image(int number, const std::string& name);

// A tar archive of these members (ustar), as WebDataset writes it.
std::string tar_file(const std::vector<std::pair<std::string, std::string>>& members);

void put_file(const std::string& path, const std::string& content);  // its folders too
std::string file_content(const std::string& path);

}  // namespace echelon::test
