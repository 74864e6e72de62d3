// A 64-bit checksum of bytes: equality of replicas, files of checkpoints, config hashes. Not cryptographic. The value
// is stored in files, so it never changes between versions; words are read in the byte order of the host
// (little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Four interleaved multiply-rotate lanes over 32-byte blocks (the construction of xxHash64, not its values), then one
// SplitMix64 mix for each lane and rest. One pass at memory speed; `data` needs no alignment and may be null where
// bytes = 0.
std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum64(std::string_view text) { return checksum64(text.data(), text.size()); }

// Of blocks of 4 MiB, each block's checksum being the seed of the next and the last one shorter than that, so it
// differs from checksum64 of the content. For what is written or read in parts.
inline constexpr std::size_t kSumBlock = std::size_t{4} << 20;
std::uint64_t checksum_in_blocks(const void* data, std::size_t bytes, std::uint64_t seed = 0);

// A file that is read for its checksums (checksum_in_blocks): sequential reads, 4 MiB of memory. EnvironmentError with
// the system's reason where it cannot be read.
class SummedFile {
 public:
  explicit SummedFile(const std::string& path);
  ~SummedFile();
  SummedFile(const SummedFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  // EnvironmentError where the file ends before.
  std::uint64_t checksum(std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed = 0);
  // What was synced before is read from the disk from here on, as far as the system follows that advice.
  void forget_cached();

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::vector<unsigned char> block_;
};

struct FileSum {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};
FileSum checksum_of_file(const std::string& path);

// CRC-32C (Castagnoli, RFC 3720): of messages and of TensorBoard's records. By the processor's instruction, 8 bytes in
// 3 cycles; `before` is that of the bytes before these.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);
inline std::uint32_t crc32c(std::string_view text) { return crc32c(text.data(), text.size()); }
// The same of bytes that are copied on the way; the ranges do not overlap.
std::uint32_t copy_with_crc32c(void* to, const void* from, std::size_t bytes, std::uint32_t before = 0);

std::string hex64(std::uint64_t value);  // 16 digits

}  // namespace echelon::inline base
