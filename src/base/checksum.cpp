// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/vectors.hpp"

namespace echelon::inline base {

std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87ULL, kPrime2 = 0xc2b2ae3d27d4eb4fULL;
  const auto* at = static_cast<const unsigned char*>(data);
  const auto word = [](const unsigned char* p) {
    std::uint64_t value;
    std::memcpy(&value, p, 8);
    return value;
  };
  std::uint64_t lane[4] = {seed + kPrime1, seed + kPrime2, seed, seed - kPrime1};
  std::size_t left = bytes;
  for (; left >= 32; left -= 32, at += 32)
    for (int i = 0; i < 4; ++i) lane[i] = std::rotl(lane[i] + word(at + 8 * i) * kPrime2, 31) * kPrime1;
  std::uint64_t h = bytes;
  for (std::uint64_t value : lane) h = hash_combine(h, value);
  for (; left >= 8; left -= 8, at += 8) h = hash_combine(h, word(at));
  for (; left > 0; --left, ++at) h = hash_combine(h, *at);
  return h;
}

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t crc = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; bytes > 0; --bytes, ++at) rest = _mm_crc32_u8(rest, *at);
  return ~rest;
}

std::uint32_t copy_with_crc32c(void* to, const void* from, std::size_t bytes, std::uint32_t before) {
  constexpr std::size_t kBlock = 8192;  // stays in the nearest cache
  auto* into = static_cast<unsigned char*>(to);
  const auto* at = static_cast<const unsigned char*>(from);
  for (std::size_t done = 0; done < bytes; done += kBlock) {
    const std::size_t n = std::min(kBlock, bytes - done);
    std::memcpy(into + done, at + done, n);
    before = crc32c(into + done, n, before);
  }
  return before;
}

SummedFile::SummedFile(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    const int error = errno;
    if (file_ >= 0) ::close(file_);
    throw EnvironmentError(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

SummedFile::~SummedFile() { ::close(file_); }

void SummedFile::forget_cached() { static_cast<void>(::posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED)); }

std::uint64_t SummedFile::checksum(std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed) {
  block_.resize(std::max(block_.size(), static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kSumBlock))));
  for (;;) {
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kSumBlock));
    for (std::size_t filled = 0; filled < now;) {
      const ssize_t got = ::pread(file_, block_.data() + filled, now - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        throw EnvironmentError(
            fmt::format("{}: cannot be read: {}", path_, got < 0 ? std::strerror(errno) : "the file ends too early"));
      filled += static_cast<std::size_t>(got);
    }
    seed = checksum64(block_.data(), now, seed);
    if (now < kSumBlock) return seed;
    offset += now, bytes -= now;
  }
}

std::string hex64(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace echelon::inline base
