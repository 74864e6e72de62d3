// SPDX-License-Identifier: Apache-2.0
// Decoding of JPEG and PNG compared with their definitions, scaling with a plain sum in double, and damaged files.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "data/import/image.hpp"
#include "tests/support/images.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::PngColour;
using test::PngKind;
using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::size_t n, std::int64_t most, const char* name) {
  Bytes bytes;
  for (const std::int64_t value : test::random_integers(n, 0, most, name))
    bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

std::uint8_t rounded(double value) { return static_cast<std::uint8_t>(std::lround(value)); }

// Returns what decode_image must give for red, green, blue and alpha in [0, 255].
Bytes expected(const std::vector<double>& rgba, int channels) {
  Bytes all;
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    double rgb[3];
    for (std::size_t c = 0; c < 3; ++c)
      rgb[c] = rounded(rgba[i + c] * rgba[i + 3] / 255 + 255 * (1 - rgba[i + 3] / 255));
    if (channels == 3)
      for (const double value : rgb) all.push_back(static_cast<std::uint8_t>(value));
    else
      all.push_back(static_cast<std::uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) / 65536));
  }
  return all;
}

// Unpacks stored PNG values into four values per pixel.
std::vector<double> unpacked(const PngKind& kind, int width, int height, const Bytes& rows) {
  const int values = kind.colour == PngColour::rgb          ? 3
                     : kind.colour == PngColour::rgb_alpha  ? 4
                     : kind.colour == PngColour::grey_alpha ? 2
                                                            : 1;
  const std::size_t row_bytes = rows.size() / static_cast<std::size_t>(height);
  std::vector<double> rgba;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double value[4] = {};
      for (int v = 0; v < values; ++v) {
        const auto bit = static_cast<std::size_t>((x * values + v) * kind.depth);
        const std::uint8_t* at = rows.data() + static_cast<std::size_t>(y) * row_bytes + bit / 8;
        const int most = (1 << kind.depth) - 1;
        const int number =
            kind.depth == 16 ? at[0] * 256 + at[1] : at[0] >> (8 - kind.depth - static_cast<int>(bit % 8)) & most;
        value[v] = kind.colour == PngColour::palette ? number : std::round(number * 255.0 / most);
      }
      const auto entry = static_cast<std::size_t>(value[0]);
      switch (kind.colour) {
        case PngColour::grey: rgba.insert(rgba.end(), {value[0], value[0], value[0], 255.0}); break;
        case PngColour::grey_alpha: rgba.insert(rgba.end(), {value[0], value[0], value[0], value[1]}); break;
        case PngColour::rgb: rgba.insert(rgba.end(), {value[0], value[1], value[2], 255.0}); break;
        case PngColour::rgb_alpha: rgba.insert(rgba.end(), {value[0], value[1], value[2], value[3]}); break;
        case PngColour::palette:
          for (std::size_t c = 0; c < 3; ++c) rgba.push_back(kind.palette[3 * entry + c]);
          rgba.push_back(entry < kind.alpha.size() ? kind.alpha[entry] : 255.0);
      }
    }
  return rgba;
}

// Scales by a plain sum over the whole image; the weights form a triangle as wide as the larger of the two pixel sizes.
double scaled_at(const Image& image, double from_y, double step_y, double from_x, double step_x, int y, int x, int c) {
  const double reach_y = std::max(1.0, step_y), reach_x = std::max(1.0, step_x);
  const double centre_y = from_y + (y + 0.5) * step_y, centre_x = from_x + (x + 0.5) * step_x;
  double sum = 0, weights = 0;
  for (int v = 0; v < image.height; ++v)
    for (int u = 0; u < image.width; ++u) {
      const double weight = std::max(0.0, 1 - std::abs(v + 0.5 - centre_y) / reach_y) *
                            std::max(0.0, 1 - std::abs(u + 0.5 - centre_x) / reach_x);
      sum += weight * image.pixels[static_cast<std::size_t>((v * image.width + u) * image.channels + c)];
      weights += weight;
    }
  return sum / weights;
}

std::string refused(const std::string& file, int channels = 3) {
  return test::refusal<DataError>([&] { (void)decode_image(file, channels); });
}

TEST_CASE("every kind of PNG becomes the bytes that its definition gives", "[data][import][image]") {
  const PngColour colour =
      GENERATE(PngColour::grey, PngColour::rgb, PngColour::palette, PngColour::grey_alpha, PngColour::rgb_alpha);
  for (const int depth : {1, 2, 4, 8, 16}) {
    const bool small = colour == PngColour::grey || colour == PngColour::palette;
    if ((depth < 8 && !small) || (depth == 16 && colour == PngColour::palette)) continue;
    for (const bool interlaced : {false, true}) {
      PngKind kind{.colour = colour, .depth = depth, .interlaced = interlaced};
      if (colour == PngColour::palette) {
        kind.palette = random_bytes(3 << depth, 255, "palette");
        kind.alpha = random_bytes(std::size_t{1} << depth >> 1, 255, "alpha of the palette");
      }
      const int width = 13, height = 7;
      const int values = colour == PngColour::rgb          ? 3
                         : colour == PngColour::rgb_alpha  ? 4
                         : colour == PngColour::grey_alpha ? 2
                                                           : 1;
      const auto row_bytes = static_cast<std::size_t>((width * values * depth + 7) / 8);
      const Bytes rows = random_bytes(row_bytes * height, 255, "rows");
      const std::string file = test::png_file(width, height, kind, rows);
      const std::vector<double> rgba = unpacked(kind, width, height, rows);
      for (const int channels : {1, 3}) {
        INFO("colour " << static_cast<int>(colour) << ", " << depth << " bits, " << channels << " channels");
        const Image image = decode_image(file, channels);
        REQUIRE((image.width == width && image.height == height && image.channels == channels));
        CHECK(image.pixels == expected(rgba, channels));
      }
    }
  }
}

TEST_CASE("JPEG keeps what was stored, in colour and grey, also progressive; CMYK is refused",
          "[data][import][image]") {
  const int width = 37, height = 21, channels = GENERATE(1, 3);
  const Bytes pixels = test::soft_pixels(width, height, channels, "jpeg");
  const bool progressive = GENERATE(false, true);
  const std::string file = test::jpeg_file(width, height, channels, pixels, 98, progressive);
  for (const int wanted : {1, 3}) {
    const Image image = decode_image(file, wanted);
    REQUIRE((image.width == width && image.height == height && image.channels == wanted));
    double worst = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(width * height); ++i) {
      const std::uint8_t* was = pixels.data() + i * static_cast<std::size_t>(channels);
      const double grey = channels == 1 ? was[0] : 0.299 * was[0] + 0.587 * was[1] + 0.114 * was[2];
      for (std::size_t c = 0; c < static_cast<std::size_t>(wanted); ++c) {
        const double is = image.pixels[i * static_cast<std::size_t>(wanted) + c];
        worst = std::max(worst, std::abs(is - (wanted == 1 || channels == 1 ? grey : was[c])));
      }
    }
    CHECK(worst < (wanted == 3 && channels == 3 ? 24 : 5));  // JPEG stores colours at half the resolution
  }
  CHECK_THAT(refused(test::jpeg_file(8, 8, 4, Bytes(256, 77))), Contains("CMYK JPEG"));
}

TEST_CASE("images are scaled and cut as plain sums give it, up and down", "[data][import][image]") {
  struct Case {
    int width, height, to_height, to_width;
  };
  const Case sizes = GENERATE(Case{61, 47, 13, 9}, Case{5, 9, 17, 23}, Case{40, 17, 17, 17}, Case{31, 62, 8, 20},
                              Case{1, 1, 3, 5}, Case{19, 23, 19, 11});
  const int channels = GENERATE(1, 3);
  const auto [width, height, to_height, to_width] = sizes;
  const Image image{.width = width,
                    .height = height,
                    .channels = channels,
                    .pixels = random_bytes(static_cast<std::size_t>(width * height * channels), 255, "to scale")};
  const auto plane = static_cast<std::size_t>(to_height * to_width);
  Bytes planes(plane * static_cast<std::size_t>(channels));
  fit_image(image, to_height, to_width, planes.data());

  const double factor = std::max(static_cast<double>(to_height) / height, static_cast<double>(to_width) / width);
  const long wide = std::lround(width * factor), high = std::lround(height * factor);
  REQUIRE((wide >= to_width && high >= to_height && (wide == to_width || high == to_height)));
  const double step_x = static_cast<double>(width) / static_cast<double>(wide),
               step_y = static_cast<double>(height) / static_cast<double>(high);
  const double from_x = static_cast<double>((wide - to_width) / 2) * step_x,
               from_y = static_cast<double>((high - to_height) / 2) * step_y;
  double worst = 0;
  for (int c = 0; c < channels; ++c)
    for (int y = 0; y < to_height; ++y)
      for (int x = 0; x < to_width; ++x) {
        const double is = planes[static_cast<std::size_t>(c) * plane + static_cast<std::size_t>(y * to_width + x)];
        worst = std::max(worst, std::abs(is - scaled_at(image, from_y, step_y, from_x, step_x, y, x, c)));
      }
  CHECK(worst <= 1.01);  // values are rounded twice
}

TEST_CASE("scaled images have the bits of Pillow 10.4", "[data][import][image]") {
  Image image{.width = 7, .height = 5, .channels = 1, .pixels = {}};
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x) image.pixels.push_back(static_cast<std::uint8_t>(37 * y * y + 91 * x + 53 * x * y));
  Bytes small(12), large(140);
  fit_image(image, 3, 4, small.data());
  CHECK(small == Bytes{70, 124, 127, 138, 104, 98, 144, 95, 92, 130, 68, 65});
  fit_image(image, 10, 14, large.data());
  large.resize(28);
  CHECK(large == Bytes{0, 23, 68, 114, 159, 141, 58, 40, 85, 131, 176, 158, 75, 34,
                       9, 36, 87, 124, 144, 132, 88, 76, 96, 133, 184, 173, 97, 59});
}

TEST_CASE("a file that ends early, is damaged or is something else is refused with the reason",
          "[data][import][image]") {
  const Bytes pixels = random_bytes(40 * 30 * 3, 255, "to damage");
  const std::string jpeg = test::jpeg_file(40, 30, 3, pixels), png = test::png_file(40, 30, {}, pixels);
  for (const std::string& file : {jpeg, png})
    for (const double part : {0.02, 0.3, 0.7, 0.99}) {
      INFO(part);
      const auto bytes = static_cast<std::size_t>(part * static_cast<double>(file.size()));
      CHECK_THAT(refused(file.substr(0, bytes)), Contains("can be read: "));
    }
  std::string flipped = png;
  flipped[png.size() / 2] = static_cast<char>(flipped[png.size() / 2] ^ 4);
  CHECK_THAT(refused(flipped), Contains("not a PNG that can be read: IDAT"));
  std::string huge = png;  // 2^30 wide
  huge[16] = 0x40;
  CHECK_THAT(refused(huge), Contains("not a PNG that can be read") || Contains("claims 10737"));
  std::string wide = jpeg;
  const std::size_t frame = wide.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  wide.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  CHECK_THAT(refused(wide), Contains("claims 65500 x 65500 pixels"));
  CHECK(refused("") == "is empty");
  CHECK(refused("GIF89a..") == "is neither JPEG nor PNG: it begins with 0x47494638");
}

}  // namespace
}  // namespace echelon
