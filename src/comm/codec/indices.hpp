// Rising places of values, written in few bits: what the sparse codecs share.
//
//   raw      32 bits a place, the extra bit lowest (Strom 2015: 31 bits of place, one of sign)
//   golomb   gap - 1 by Golomb-Rice with 2^b, b from the mean gap: quotient in unary, b bits (Rice 1971)
//   gamma    gap by Elias gamma: as many zeros as it has bits after the first, then its bits (Elias 1975)
// A gap is the distance from the place before (the first: from -1). Bits fill bytes from the lowest; after the place
// comes one extra bit where `extra` (a sign).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace echelon::inline comm {

enum class IndexCoding : std::uint8_t { raw, golomb, gamma };
IndexCoding index_coding_of(std::string_view name);

struct IndexFormat {
  IndexCoding coding = IndexCoding::raw;
  std::uint8_t rice_bits = 0;  // golomb
  bool extra = false;
};

// The format that suits `count` places among n; golomb takes about log2(n / count) + 1.5 bits each.
IndexFormat format_for(IndexCoding coding, bool extra, std::size_t count, std::int64_t n);
// Bytes that these places take.
std::size_t bytes_of_indices(const IndexFormat& format, std::span<const std::uint32_t> places);
// Each entry is place << 1 | extra bit (places below 2^31). Returns the bytes written.
std::size_t write_indices(const IndexFormat& format, std::span<const std::uint32_t> entries, std::byte* wire);

// Reads what write_indices wrote, one entry after another; never beyond the end (then `next` throws).
class IndexReader {
 public:
  IndexReader(const IndexFormat& format, const std::byte* wire, std::size_t bytes)
      : format_(format), at_(wire), end_(wire + bytes) {}
  std::uint32_t next();  // place << 1 | extra bit

 private:
  std::uint32_t bits(int count);
  std::uint32_t zeros();
  void fill();

  IndexFormat format_;
  const std::byte* at_;
  const std::byte* end_;
  std::uint64_t held_ = 0;
  int held_bits_ = 0;
  std::int64_t place_ = -1;
};

}  // namespace echelon::inline comm
