// SPDX-License-Identifier: Apache-2.0
#include "h5/fletcher.hpp"

#include <array>

namespace echelon::h5 {
namespace {

// 16 lanes of words, 128 rounds: the sums of a lane stay below 2^31.
constexpr std::size_t kLanes = 16, kRounds = 128;
constexpr std::size_t kWords = kLanes * kRounds;
static_assert(2 * kWords == Fletcher32::kPiece);

std::uint32_t word_at(const std::uint8_t* data) { return static_cast<std::uint32_t>(data[0] << 8 | data[1]); }

// The library reduces by adding the carry, so multiples of 65535 other than 0 give 65535.
std::uint32_t folded(std::uint64_t sum, bool zero) {
  return zero ? 0 : static_cast<std::uint32_t>(sum % 65535 == 0 ? 65535 : sum % 65535);
}

}  // namespace

void Fletcher32::add_word(std::uint32_t word) {
  first_ += word;
  second_ += first_;
}

void Fletcher32::add_block(const std::uint8_t* data) {
  std::array<std::uint32_t, kLanes> sum{}, weighted{};
  for (std::size_t round = 0; round < kRounds; ++round)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum[lane] += word_at(data + 2 * (round * kLanes + lane));
      weighted[lane] += sum[lane];
    }
  second_ += kWords * first_;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    first_ += sum[lane];
    second_ += kLanes * std::uint64_t{weighted[lane]} - lane * sum[lane];
  }
  first_ %= 65535;
  second_ %= 65535;
}

void Fletcher32::add(const std::uint8_t* data, std::size_t bytes) {
  for (std::size_t i = 0; zero_ && i < bytes; ++i) zero_ = data[i] == 0;
  for (; bytes >= kPiece; bytes -= kPiece, data += kPiece) add_block(data);
  for (; bytes >= 2; bytes -= 2, data += 2) add_word(word_at(data));
  if (bytes == 1) add_word(static_cast<std::uint32_t>(*data << 8));
}

bool Fletcher32::is(const std::uint8_t* stored) const {
  return (folded(second_, zero_) << 16 | folded(first_, zero_)) ==
         (std::uint32_t{stored[0]} | std::uint32_t{stored[1]} << 8 | std::uint32_t{stored[2]} << 16 |
          std::uint32_t{stored[3]} << 24);
}

}  // namespace echelon::h5
