// SPDX-License-Identifier: Apache-2.0
// The checksum of HDF5's filter "fletcher32" (Fletcher 1982, over big-endian 16-bit words). It detects every flip of
// fewer than 16 bits in one word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::h5 {

// Equals the library's H5_checksum_fletcher32, but vectorised, and for bytes that come piece by piece.
class Fletcher32 {
 public:
  static constexpr std::size_t kPiece = 4096;
  // All calls but the last must have a multiple of kPiece bytes.
  void add(const std::uint8_t* data, std::size_t bytes);
  // Whether the four bytes that are stored behind a chunk are its checksum.
  bool is(const std::uint8_t* stored) const;

 private:
  void add_word(std::uint32_t word);
  void add_block(const std::uint8_t* data);

  // Sums of words modulo 65535. The second weights each word by its distance from the end, in words.
  std::uint64_t first_ = 0, second_ = 0;
  bool zero_ = true;  // all bytes are
};

}  // namespace echelon::h5
