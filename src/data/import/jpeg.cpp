// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg, with its exact integer transform (JDCT_ISLOW), which gives the same bytes on every machine.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>

#include "base/error.hpp"
#include "data/import/image.hpp"

namespace echelon::inline data {
namespace {

struct Errors {
  jpeg_error_mgr library;  // must be first: the library's pointer to it is cast to this struct
  std::jmp_buf out;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void stop(j_common_ptr info) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  errors->library.format_message(info, errors->text);
  std::longjmp(errors->out, 1);
}

// The library continues after damaged values and fills in grey. `level`: -1 for warnings.
void warned(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) stop(info);
}

// Frees the library's memory.
struct Decoder {
  jpeg_decompress_struct info{};
  Errors errors{};
  Decoder() {
    info.err = jpeg_std_error(&errors.library);
    errors.library.error_exit = stop;
    errors.library.emit_message = warned;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
};

bool is_cmyk(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

// Returns false with errors.text set. The library longjmps to here on errors, so no object here has a destructor.
bool read_header(Decoder& decoder, std::string_view bytes) {
  if (setjmp(decoder.errors.out) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}
bool start(Decoder& decoder) {
  if (setjmp(decoder.errors.out) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  return true;
}
bool read_rows(Decoder& decoder, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(decoder.errors.out) != 0) return false;
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW row = pixels + decoder.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, int channels) {
  Decoder decoder;
  jpeg_decompress_struct& info = decoder.info;
  const auto require = [&](bool done) {
    if (!done) throw DataError(fmt::format("is damaged or not a JPEG that can be read: {}", decoder.errors.text));
  };
  require(read_header(decoder, bytes));
  if (is_cmyk(info)) throw DataError("is a CMYK JPEG, whose colours depend on a printer; convert it to RGB");
  if (!fair_extents(info.image_width, info.image_height))
    throw DataError(unfair_text(info.image_width, info.image_height));
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  require(start(decoder));
  Image image{.width = static_cast<int>(info.output_width),
              .height = static_cast<int>(info.output_height),
              .channels = channels,
              .pixels = {}};
  const std::size_t row_bytes = std::size_t{info.output_width} * static_cast<std::size_t>(channels);
  image.pixels.resize(row_bytes * info.output_height);
  require(read_rows(decoder, image.pixels.data(), row_bytes));
  return image;
}

}  // namespace echelon::inline data
