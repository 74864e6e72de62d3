#include "base/checksum.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

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

FileSum checksum_of_file(const std::string& path) {
  constexpr std::size_t kBlock = std::size_t{4} << 20;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw EnvironmentError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::vector<unsigned char> block(kBlock);
  FileSum sum;
  for (std::size_t filled = 0;;) {
    const ssize_t got = ::read(fd, block.data() + filled, kBlock - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(fd);
      throw EnvironmentError(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
    }
    filled += static_cast<std::size_t>(got);
    if (got > 0 && filled < kBlock) continue;
    sum.checksum = checksum64(block.data(), filled, sum.checksum);
    sum.bytes += filled;
    if (got == 0) break;
    filled = 0;
  }
  ::close(fd);
  return sum;
}

std::string hex64(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace echelon::inline base
