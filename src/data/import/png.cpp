// SPDX-License-Identifier: Apache-2.0
// PNG by libpng.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"
#include "data/import/image.hpp"

namespace echelon::inline data {
namespace {

struct Input {
  std::string_view left;
  char trouble[256];
};

[[noreturn]] void stop(png_structp png, png_const_charp text) {
  auto* const input = static_cast<Input*>(png_get_error_ptr(png));
  (void)std::snprintf(input->trouble, sizeof input->trouble, "%s", text);
  png_longjmp(png, 1);
}
void warned(png_structp, png_const_charp) {}  // ignores warnings, which do not concern the pixels

void take(png_structp png, png_bytep dst, std::size_t bytes) {
  auto* const input = static_cast<Input*>(png_get_io_ptr(png));
  if (bytes > input->left.size()) png_error(png, "it ends early");
  std::memcpy(dst, input->left.data(), bytes);
  input->left.remove_prefix(bytes);
}

// Frees the library's memory.
struct Decoder {
  Input input;
  png_structp png;
  png_infop info;
  explicit Decoder(std::string_view bytes)
      : input{bytes, {}},
        png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, stop, warned)),
        info(png != nullptr ? png_create_info_struct(png) : nullptr) {
    if (info == nullptr) throw DataError("libpng cannot be started");
  }
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
};

// Returns false with input.trouble set. The library longjmps to here on errors, so no object here has a destructor.
bool read_header(Decoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &decoder.input, take);
  png_read_info(decoder.png, decoder.info);
  return true;
}
// Converts to 8 bits of grey or colour, with alpha if there is any.
bool start(Decoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_expand(decoder.png);
  png_set_scale_16(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}
bool read_rows(Decoder& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

void require_done(const Decoder& decoder, bool done) {
  if (!done) throw DataError(fmt::format("is damaged or not a PNG that can be read: {}", decoder.input.trouble));
}

ImageHeader header_of(Decoder& decoder) {
  require_done(decoder, read_header(decoder));
  const ImageHeader header{.height = png_get_image_height(decoder.png, decoder.info),
                           .width = png_get_image_width(decoder.png, decoder.info),
                           .coloured = (png_get_color_type(decoder.png, decoder.info) & PNG_COLOR_MASK_COLOR) != 0};
  if (!fair_extents(header.width, header.height)) throw DataError(unfair_text(header.width, header.height));
  return header;
}

}  // namespace

ImageHeader png_header(std::string_view bytes) {
  Decoder decoder(bytes);
  return header_of(decoder);
}

Image decode_png(std::string_view bytes) {
  Decoder decoder(bytes);
  const ImageHeader header = header_of(decoder);
  require_done(decoder, start(decoder));
  Image image{.width = static_cast<int>(header.width),
              .height = static_cast<int>(header.height),
              .channels = png_get_channels(decoder.png, decoder.info),
              .pixels = {}};
  const std::size_t row_bytes = png_get_rowbytes(decoder.png, decoder.info);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(header.height));
  std::vector<png_bytep> rows(static_cast<std::size_t>(header.height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
  require_done(decoder, read_rows(decoder, rows.data()));
  return image;
}

std::string encode_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const auto write = [&](void* to) {
    if (png_image_write_to_memory(&header, to, &size, 0, image.pixels.data(), 0, nullptr) == 0)
      throw EnvironmentError(fmt::format("libpng cannot write an image: {}", header.message));
  };
  write(nullptr);  // sets the size
  std::string bytes(size, '\0');
  write(bytes.data());
  return bytes;
}

}  // namespace echelon::inline data
