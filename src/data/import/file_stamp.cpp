// SPDX-License-Identifier: Apache-2.0
#include "data/import/file_stamp.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline data {

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
