// A 64-bit checksum of bytes for the agreement of replicas, checkpoints and config hashes. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon::inline base {

// Four interleaved multiply-rotate lanes (the construction of xxHash64), so that it runs at memory speed.
std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum64(std::string_view text) { return checksum64(text.data(), text.size()); }

// Of a whole file, read in blocks of 4 MiB, each block's checksum being the seed of the next. EnvironmentError with the
// system's reason where it cannot be read. Bound by the page cache or the disk, whichever holds the file.
struct FileSum {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};
FileSum checksum_of_file(const std::string& path);

std::string hex64(std::uint64_t value);  // 16 digits

}  // namespace echelon::inline base
