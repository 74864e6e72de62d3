#include "data/import/image_input.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline data {

std::unique_ptr<ImageInput> open_images(const ImageRequest& request) {
  return request.format == "tar" ? open_image_archives(request) : open_image_folder(request);
}

bool is_image_name(const std::string& name) {
  const std::size_t base = name.rfind('/') + 1, dot = name.rfind('.');  // npos + 1 is 0
  if (dot == std::string::npos || dot <= base || name[base] == '.') return false;
  std::string ending = name.substr(dot + 1);
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array known = {"jpg", "jpeg", "jpe", "jfif", "png"};
  return std::find(known.begin(), known.end(), ending) != known.end();
}

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  const auto time = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                    static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return {static_cast<std::int64_t>(bytes), hash_combine(time, bytes)};
}

}  // namespace echelon::inline data
