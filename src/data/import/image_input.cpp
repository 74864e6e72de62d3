// SPDX-License-Identifier: Apache-2.0
#include "data/import/image_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/lower_case.hpp"

namespace echelon::inline data {
namespace {

std::string ending_of(const std::string& name) {
  const std::size_t base = name.rfind('/') + 1, dot = name.rfind('.');  // npos + 1 is 0
  if (dot == std::string::npos || dot <= base || name[base] == '.') return {};
  return lower_case(name.substr(dot + 1));
}

}  // namespace

std::unique_ptr<ImageInput> open_images(const ImageRequest& request) {
  return request.format == "tar" ? open_image_archives(request) : open_image_folder(request);
}

bool is_image_name(const std::string& name) {
  constexpr std::array known = {"jpg", "jpeg", "jpe", "jfif", "png"};
  return std::find(known.begin(), known.end(), ending_of(name)) != known.end();
}

std::string other_file(const std::string& name) {
  constexpr std::array images = {"webp", "gif", "bmp", "tif", "tiff", "heic", "heif", "avif", "jp2",
                                 "jxl",  "ppm", "pgm", "pnm", "svg",  "tga",  "dng",  "raw"};
  const std::string ending = ending_of(name);
  if (std::find(images.begin(), images.end(), ending) == images.end()) return kind_of_file(name);
  return fmt::format("{}{} image", '.', ending);
}

void put(Packing& packing, const ImageUnit& unit) {
  packing.put(std::uint64_t{unit.items.size()});
  for (const ImageItem& item : unit.items) {
    packing.put(item.label);
    packing.put(std::string_view(item.name));
    packing.put(item.offset);
    packing.put(item.bytes);
    packing.put(item.stamp);
  }
  packing.put(unit.classes);
  packing.put(unit.damaged);
  packing.put(std::uint64_t{unit.passed.size()});
  for (const PassedOver& passed : unit.passed) {
    packing.put(std::string_view(passed.what));
    packing.put(std::string_view(passed.first));
    packing.put(passed.count);
  }
}

ImageUnit get_unit(Unpacking& packed, std::int32_t unit) {
  ImageUnit found;
  std::uint64_t count = 0;
  packed.get(count);
  found.items.resize(count);
  for (ImageItem& item : found.items) {
    item.unit = unit;
    packed.get(item.label);
    packed.get(item.name);
    packed.get(item.offset);
    packed.get(item.bytes);
    packed.get(item.stamp);
  }
  packed.get(found.classes);
  packed.get(found.damaged);
  packed.get(count);
  found.passed.resize(count);
  for (PassedOver& passed : found.passed) {
    packed.get(passed.what);
    packed.get(passed.first);
    packed.get(passed.count);
  }
  return found;
}

}  // namespace echelon::inline data
