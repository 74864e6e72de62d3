// SPDX-License-Identifier: Apache-2.0
#include "tests/support/images.hpp"

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

void append(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), count);
}

std::vector<std::uint8_t> random_bytes(std::size_t n, std::int64_t most, const std::string& name) {
  std::vector<std::uint8_t> bytes;
  for (const std::int64_t value : random_integers(n, 0, most, name)) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

}  // namespace

std::string png_file(int width, int height, const PngKind& kind, const std::vector<std::uint8_t>& rows) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.depth,
               static_cast<int>(kind.colour), kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  for (std::size_t i = 0; i + 2 < kind.palette.size(); i += 3)
    palette.push_back({kind.palette[i], kind.palette[i + 1], kind.palette[i + 2]});
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  if (!kind.alpha.empty()) png_set_tRNS(png, info, kind.alpha.data(), static_cast<int>(kind.alpha.size()), nullptr);
  png_write_info(png, info);
  const std::size_t row_bytes = rows.size() / static_cast<std::size_t>(height);
  std::vector<png_bytep> at;
  for (int y = 0; y < height; ++y)
    at.push_back(const_cast<png_bytep>(rows.data()) + static_cast<std::size_t>(y) * row_bytes);
  png_write_image(png, at.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string jpeg_file(int width, int height, int channels, const std::vector<std::uint8_t>& pixels, int quality,
                      bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data()) +
                std::size_t{info.next_scanline} * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

std::vector<std::uint8_t> soft_pixels(int width, int height, int channels, const std::string& name) {
  std::vector<std::uint8_t> pixels;
  const std::vector<double> random = random_values(static_cast<std::size_t>(channels) * 3, name);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
        pixels.push_back(static_cast<std::uint8_t>(
            127.5 + 100 * std::sin(0.12 * x * random[3 * c] + 0.12 * y * random[3 * c + 1] + 3 * random[3 * c + 2])));
  return pixels;
}

std::string any_image(int number, const std::string& name) {
  const auto extents = random_integers(2, 5, 24, name + " extents");
  const int width = static_cast<int>(2 * extents[0] + 1), height = static_cast<int>(2 * extents[1] + 1);
  const auto n = static_cast<std::size_t>(width * height);
  if (number % 2 == 1) {
    const int channels = number % 8 == 1 ? 1 : 3;
    return jpeg_file(width, height, channels, soft_pixels(width, height, channels, name), 85, number % 8 == 5);
  }
  switch (number / 2 % 5) {
    case 0: return png_file(width, height, {.colour = PngColour::grey}, random_bytes(n, 255, name));
    case 1: return png_file(width, height, {.interlaced = true}, random_bytes(3 * n, 255, name));
    case 2: return png_file(width, height, {.depth = 16}, random_bytes(6 * n, 255, name));
    case 3:
      return png_file(width, height,
                      {.colour = PngColour::palette, .palette = random_bytes(48, 255, name + " palette")},
                      random_bytes(n, 15, name));
    default: return png_file(width, height, {.colour = PngColour::rgb_alpha}, random_bytes(4 * n, 255, name));
  }
}

std::string tar_file(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string tar;
  for (const auto& [name, content] : members) {
    if (name.size() > 100) throw std::runtime_error("a name too long for this writer: " + name);
    std::string block(512, '\0');
    block.replace(0, name.size(), name);
    block.replace(100, 7, "0000644");
    block.replace(124, 11, fmt::format("{:011o}", content.size()));
    block.replace(148, 8, "        ");
    block[156] = '0';
    block.replace(257, 8, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    block.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
    tar += block + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

void put_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace echelon::test
