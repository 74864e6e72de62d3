// SPDX-License-Identifier: Apache-2.0
// Tells whether a file is the one that was seen before, without reading it.
#pragma once

#include <cstdint>
#include <string>

namespace echelon::inline data {

// Returns a file's size in bytes and its stamp, from size and modification time. Throws DataError if it cannot be read.
struct FileStamp {
  std::int64_t bytes = 0;
  std::uint64_t stamp = 0;
};
FileStamp stamp_of(const std::string& path);

}  // namespace echelon::inline data
