// SPDX-License-Identifier: Apache-2.0
#include "h5/fletcher.hpp"

#include <array>

namespace echelon::h5 {
namespace {

// 16 lanes of words, 128 rounds: the sums of a lane stay below 2^31.
constexpr std::size_t kLanes = 16, kRounds = 128;
constexpr std::size_t kWords = kLanes * kRounds;

std::uint32_t word_at(const std::uint8_t* data) { return static_cast<std::uint32_t>(data[0] << 8 | data[1]); }

// The two sums modulo 65535. The second weights each word by its distance from the end, in words.
struct Sums {
  std::uint64_t first = 0, second = 0;

  void add_word(std::uint32_t word) {
    first += word;
    second += first;
  }
  void add_block(const std::uint8_t* data) {
    std::array<std::uint32_t, kLanes> sum{}, weighted{};
    for (std::size_t round = 0; round < kRounds; ++round)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sum[lane] += word_at(data + 2 * (round * kLanes + lane));
        weighted[lane] += sum[lane];
      }
    second += kWords * first;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      first += sum[lane];
      second += kLanes * std::uint64_t{weighted[lane]} - lane * sum[lane];
    }
    reduce();
  }
  void reduce() {
    first %= 65535;
    second %= 65535;
  }
};

// The library reduces by adding the carry, so multiples of 65535 other than 0 give 65535.
std::uint32_t folded(std::uint64_t sum, bool zero) {
  return zero ? 0 : static_cast<std::uint32_t>(sum % 65535 == 0 ? 65535 : sum % 65535);
}

}  // namespace

std::uint32_t fletcher32(const std::uint8_t* data, std::size_t bytes) {
  Sums sums;
  bool zero = true;
  for (std::size_t i = 0; zero && i < bytes; ++i) zero = data[i] == 0;
  while (bytes >= 2 * kWords) {
    sums.add_block(data);
    data += 2 * kWords;
    bytes -= 2 * kWords;
  }
  for (; bytes >= 2; bytes -= 2, data += 2) sums.add_word(word_at(data));
  if (bytes == 1) sums.add_word(static_cast<std::uint32_t>(*data << 8));
  return folded(sums.second, zero) << 16 | folded(sums.first, zero);
}

}  // namespace echelon::h5
