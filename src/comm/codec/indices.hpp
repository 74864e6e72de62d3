// SPDX-License-Identifier: Apache-2.0
// Common to the sparse codecs: rising indices of values, written in few bits. An index is below 2^31.
//
//   raw      32 bits per index, with the extra bit lowest (Strom 2015: 31 bits of index, one of sign)
//   golomb   gap - 1 by Golomb-Rice with 2^b, b from the mean gap: quotient in unary, then b bits (Rice 1971)
//   gamma    gap by Elias gamma: one zero for each bit after its leading one, then its bits (Elias 1975)
// A gap is the distance from the previous index (the first: from -1), so it is at least 1. Bits fill bytes from the
// lowest; each gap is followed by one extra bit (a sign) if `extra`. All is O(count); nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace echelon::inline comm {

enum class IndexCoding : std::uint8_t { raw, golomb, gamma };
// A check fails for any other name: the configuration has refused it before.
IndexCoding index_coding_of(std::string_view name);

struct IndexFormat {
  IndexCoding coding = IndexCoding::raw;
  std::uint8_t rice_bits = 0;  // golomb
  bool extra = false;
};

// The format for `count` indices among n values. golomb: b = round(log2(ln 2 * n / count)), which is optimal for
// geometrically distributed gaps, about log2(n / count) + 1.5 bits per index.
IndexFormat format_for(IndexCoding coding, bool extra, std::size_t count, std::int64_t n);
// Expected bits of an entry if each place is taken with probability `density`, in (0, 1], independently of the others.
double expected_bits(const IndexFormat& format, double density);
// The bytes that write_indices would write for these entries.
std::size_t bytes_of_indices(const IndexFormat& format, std::span<const std::uint32_t> entries);
// Each entry is index << 1 | extra bit; entries are ascending. Returns the bytes written.
std::size_t write_indices(const IndexFormat& format, std::span<const std::uint32_t> entries, std::byte* wire);

// Reads what write_indices wrote, one entry after another, never beyond the end. A check fails (exit 1) if the Rice
// parameter is invalid, or if the message is damaged or ends too early.
class IndexReader {
 public:
  IndexReader(const IndexFormat& format, const std::byte* wire, std::size_t bytes);
  std::uint32_t next();  // index << 1 | extra bit; the caller checks that it is in range
  // golomb and gamma: whether all entries were read, provided that nothing else follows them. Every entry has a bit
  // that is set, and the rest of the last byte is zero.
  bool over() {
    fill();
    return at_ == end_ && held_ == 0;
  }

 private:
  std::uint32_t bits(int count);
  std::uint32_t zeros();
  void fill();

  IndexFormat format_;
  const std::byte* at_;
  const std::byte* end_;
  std::uint64_t held_ = 0;
  int held_bits_ = 0;
  std::int64_t index_ = -1;
};

}  // namespace echelon::inline comm
