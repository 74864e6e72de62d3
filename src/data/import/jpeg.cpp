// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg, with its exact integer transform (JDCT_ISLOW), which gives the same bytes on every machine.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <utility>

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

// Reads the wanted rows and columns only; the library widens the columns to whole blocks. `x` and `width` are updated.
bool crop(Decoder& decoder, JDIMENSION& x, JDIMENSION& width, JDIMENSION first_row) {
  if (setjmp(decoder.errors.out) != 0) return false;
  if (width < decoder.info.output_width) jpeg_crop_scanline(&decoder.info, &x, &width);
  if (first_row > 0) jpeg_skip_scanlines(&decoder.info, first_row);
  return true;
}
bool read_some_rows(Decoder& decoder, std::uint8_t* pixels, std::size_t row_bytes, JDIMENSION begin, JDIMENSION end) {
  if (setjmp(decoder.errors.out) != 0) return false;
  while (decoder.info.output_scanline < end) {
    JSAMPROW row = pixels + (decoder.info.output_scanline - begin) * row_bytes;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  if (decoder.info.output_scanline == decoder.info.output_height) jpeg_finish_decompress(&decoder.info);
  return true;
}

// Pixels beyond a wanted part that are decoded, too, because smooth colours of the edges depend on them.
constexpr std::int64_t kMargin = 4;

class JpegFile {
 public:
  explicit JpegFile(std::string_view bytes) {
    require(read_header(decoder_, bytes));
    if (is_cmyk(info())) throw DataError("is a CMYK JPEG, whose colours depend on a printer; convert it to RGB");
    if (!fair_extents(info().image_width, info().image_height))
      throw DataError(unfair_text(info().image_width, info().image_height));
  }
  jpeg_decompress_struct& info() { return decoder_.info; }

  void begin(int channels, unsigned shrunk) {
    info().out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info().dct_method = JDCT_ISLOW;
    info().scale_num = 1;
    info().scale_denom = shrunk;
    require(start(decoder_));
  }
  Image whole(int channels) {
    Image image = image_of(channels, info().output_height, info().output_width);
    require(read_rows(decoder_, image.pixels.data(), image.pixels.size() / info().output_height));
    return image;
  }
  // Rows from `top` on to the end that image.height tells, columns that hold [left, left + width); sets left.
  Image part(int channels, std::int64_t top, std::int64_t height, std::int64_t& left, std::int64_t width) {
    auto x = static_cast<JDIMENSION>(left), wide = static_cast<JDIMENSION>(width);
    require(crop(decoder_, x, wide, static_cast<JDIMENSION>(top)));
    left = x;
    Image image = image_of(channels, static_cast<JDIMENSION>(height), info().output_width);
    require(read_some_rows(decoder_, image.pixels.data(), image.pixels.size() / static_cast<std::size_t>(height),
                           static_cast<JDIMENSION>(top), static_cast<JDIMENSION>(top + height)));
    return image;
  }

 private:
  void require(bool done) const {
    if (!done) throw DataError(fmt::format("is damaged or not a JPEG that can be read: {}", decoder_.errors.text));
  }
  static Image image_of(int channels, JDIMENSION height, JDIMENSION width) {
    Image image{
        .width = static_cast<int>(width), .height = static_cast<int>(height), .channels = channels, .pixels = {}};
    image.pixels.resize(std::size_t{width} * height * static_cast<std::size_t>(channels));
    return image;
  }
  Decoder decoder_;
};

}  // namespace

Image decode_jpeg(std::string_view bytes, int channels) {
  JpegFile file(bytes);
  file.begin(channels, 1);
  return file.whole(channels);
}

ImageHeader jpeg_header(std::string_view bytes) {
  JpegFile file(bytes);
  return {.height = file.info().image_height,
          .width = file.info().image_width,
          .coloured = file.info().jpeg_color_space != JCS_GRAYSCALE};
}

std::int64_t decoded_smaller(const PartWanted& part) {
  std::int64_t shrunk = 1;  // other steps than powers of two have slower transforms
  while (shrunk < 8 && part.whole_height >= 2 * shrunk * part.least_height &&
         part.whole_width >= 2 * shrunk * part.least_width)
    shrunk *= 2;
  return shrunk;
}

DecodedPart decode_jpeg_part(std::string_view bytes, int channels,
                             const std::function<PartWanted(std::int64_t height, std::int64_t width)>& wanted) {
  JpegFile file(bytes);
  const PartWanted part = wanted(file.info().image_height, file.info().image_width);
  const std::int64_t shrunk = decoded_smaller(part);
  file.begin(channels, static_cast<unsigned>(shrunk));
  const auto line = [&](std::int64_t begin, std::int64_t extent, std::int64_t whole) {
    const std::int64_t first = std::max<std::int64_t>(0, begin / shrunk - kMargin);
    return std::pair(first, std::min(whole, (begin + extent + shrunk - 1) / shrunk + kMargin) - first);
  };
  const auto [top, height] = line(part.top, part.height, file.info().output_height);
  auto [left, width] = line(part.left, part.width, file.info().output_width);
  DecodedPart decoded{.image = {}, .top = top, .left = left, .shrunk = shrunk};
  decoded.image = file.part(channels, top, height, decoded.left, width);
  return decoded;
}

}  // namespace echelon::inline data
