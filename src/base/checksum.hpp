// A 64-bit checksum of bytes: equality of replicas, files of checkpoints, config hashes. Not cryptographic. The value
// is stored in files, so it never changes between versions; words are read in the byte order of the host
// (little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon::inline base {

// Four interleaved multiply-rotate lanes over 32-byte blocks (the construction of xxHash64, not its values), then one
// SplitMix64 mix for each lane and rest. One pass at memory speed; `data` needs no alignment and may be null where
// bytes = 0.
std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum64(std::string_view text) { return checksum64(text.data(), text.size()); }

// Of a whole file, read in blocks of 4 MiB, each block's checksum being the seed of the next, so it differs
// from checksum64 of the content. EnvironmentError with the system's reason where it cannot be read. One sequential
// read, 4 MiB of memory.
struct FileSum {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};
FileSum checksum_of_file(const std::string& path);

std::string hex64(std::uint64_t value);  // 16 digits

}  // namespace echelon::inline base
