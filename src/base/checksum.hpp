// SPDX-License-Identifier: Apache-2.0
// A 64-bit checksum of bytes, for the equality of replicas, files of checkpoints and config hashes. Not cryptographic.
// Values are stored in files, so the function must never change between versions. Words are read in the host's byte
// order (little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Four interleaved multiply-rotate lanes over 32-byte blocks (the construction of xxHash64, but not its values), then a
// SplitMix64 mix for each lane and the rest. One pass at memory speed. `data` needs no alignment and may be null if
// bytes = 0.
std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum64(std::string_view text) { return checksum64(text.data(), text.size()); }

// Sums blocks of 4 MiB (the last one may be shorter); the checksum of each block is the seed of the next. So the result
// differs from checksum64 of the content. For data that are written or read in parts.
inline constexpr std::size_t kSumBlock = std::size_t{4} << 20;

// Reads a file for its checksums: sequential reads, 4 MiB of memory. Throws EnvironmentError with the system's reason
// if the file cannot be read.
class SummedFile {
 public:
  explicit SummedFile(const std::string& path);
  ~SummedFile();
  SummedFile(const SummedFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  // The checksum in blocks of a part. Throws EnvironmentError if the file ends too early.
  std::uint64_t checksum(std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed = 0);
  // Makes later reads of synced data come from the disk, if the system follows this advice.
  void forget_cached();

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::vector<unsigned char> block_;
};

// CRC-32C (Castagnoli, RFC 3720), for messages and for TensorBoard's records. Uses the processor's instruction, 8 bytes
// in 3 cycles. `before`: CRC of the preceding bytes.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);
inline std::uint32_t crc32c(std::string_view text) { return crc32c(text.data(), text.size()); }
// The same for bytes that are copied on the way; the ranges must not overlap.
std::uint32_t copy_with_crc32c(void* to, const void* from, std::size_t bytes, std::uint32_t before = 0);

std::string hex64(std::uint64_t value);  // 16 digits

}  // namespace echelon::inline base
