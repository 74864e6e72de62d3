// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/indices.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline comm {
namespace {

std::uint64_t bits_of_gap(const IndexFormat& format, std::uint32_t gap) {
  if (format.coding == IndexCoding::raw) return 32;
  const std::uint64_t extra = format.extra ? 1 : 0;
  if (format.coding == IndexCoding::gamma) return 2 * static_cast<std::uint64_t>(std::bit_width(gap)) - 1 + extra;
  return ((gap - 1) >> format.rice_bits) + 1 + format.rice_bits + extra;
}

class BitWriter {
 public:
  explicit BitWriter(std::byte* wire) : wire_(wire), begin_(wire) {}
  void bits(std::uint64_t value, int count) {  // count <= 32
    held_ |= value << held_bits_;
    held_bits_ += count;
    while (held_bits_ >= 32) flush(4, 32);
  }
  void zeros(std::uint32_t count) {
    for (; count > 32; count -= 32) bits(0, 32);
    bits(0, static_cast<int>(count));
  }
  std::size_t finish() {
    while (held_bits_ > 0) flush(1, 8);
    return static_cast<std::size_t>(wire_ - begin_);
  }

 private:
  void flush(std::size_t bytes, int count) {
    std::memcpy(wire_, &held_, bytes);
    wire_ += bytes;
    held_ >>= count;
    held_bits_ -= count;
  }
  std::byte* wire_;
  std::byte* begin_;
  std::uint64_t held_ = 0;
  int held_bits_ = 0;
};

}  // namespace

IndexCoding index_coding_of(std::string_view name) {
  if (name == "raw") return IndexCoding::raw;
  if (name == "golomb") return IndexCoding::golomb;
  ECHELON_CHECK(name == "gamma", "index coding '{}'", name);
  return IndexCoding::gamma;
}

// Uses the Rice parameter that is optimal for geometrically distributed gaps, about log2(ln 2 * mean).
IndexFormat format_for(IndexCoding coding, bool extra, std::size_t count, std::int64_t n) {
  IndexFormat format{.coding = coding, .rice_bits = 0, .extra = extra};
  if (coding != IndexCoding::golomb || count == 0) return format;
  const double best = 0.6931 * static_cast<double>(n) / static_cast<double>(count);
  if (best > 1) format.rice_bits = static_cast<std::uint8_t>(std::lround(std::log2(best)));
  return format;
}

// A gap exceeds g with probability (1 - density)^g.
double expected_bits(const IndexFormat& format, double density) {
  const double extra = format.extra ? 1 : 0;
  if (format.coding == IndexCoding::raw) return 32;
  if (format.coding == IndexCoding::golomb) {
    const double again = std::pow(1 - density, std::exp2(format.rice_bits));  // for each further bit of the quotient
    return again / (1 - again) + 1 + format.rice_bits + extra;
  }
  double bits = 1 + extra;
  for (int after = 1; after < 31; ++after) bits += 2 * std::pow(1 - density, std::exp2(after) - 1);
  return bits;
}

std::size_t bytes_of_indices(const IndexFormat& format, std::span<const std::uint32_t> entries) {
  if (format.coding == IndexCoding::raw) return 4 * entries.size();
  std::uint64_t bits = 0;
  std::uint32_t next = 0;  // the first index that the gap could lead to
  for (const std::uint32_t entry : entries) {
    bits += bits_of_gap(format, (entry >> 1) - next + 1);
    next = (entry >> 1) + 1;
  }
  return static_cast<std::size_t>((bits + 7) / 8);
}

std::size_t write_indices(const IndexFormat& format, std::span<const std::uint32_t> entries, std::byte* wire) {
  if (format.coding == IndexCoding::raw) {
    if (!entries.empty()) std::memcpy(wire, entries.data(), entries.size_bytes());
    return entries.size_bytes();
  }
  BitWriter out(wire);
  std::uint32_t next = 0;
  for (const std::uint32_t entry : entries) {
    const std::uint32_t gap = (entry >> 1) - next + 1;
    next = (entry >> 1) + 1;
    if (format.coding == IndexCoding::gamma) {
      const int after = std::bit_width(gap) - 1;
      out.zeros(static_cast<std::uint32_t>(after));
      out.bits(1, 1);
      out.bits(gap & ((1u << after) - 1), after);  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult): < 32
    } else {
      out.zeros((gap - 1) >> format.rice_bits);
      out.bits(1, 1);
      out.bits((gap - 1) & ((1u << format.rice_bits) - 1), format.rice_bits);
    }
    if (format.extra) out.bits(entry & 1, 1);
  }
  return out.finish();
}

IndexReader::IndexReader(const IndexFormat& format, const std::byte* wire, std::size_t bytes)
    : format_(format), at_(wire), end_(wire + bytes) {
  ECHELON_CHECK_LT(int{format.rice_bits}, 32, "a sparse message is damaged");
}

void IndexReader::fill() {
  for (; held_bits_ <= 56 && at_ < end_; ++at_, held_bits_ += 8)
    held_ |= static_cast<std::uint64_t>(*at_) << held_bits_;
}

std::uint32_t IndexReader::bits(int count) {
  if (held_bits_ < count) fill();
  ECHELON_CHECK(held_bits_ >= count, "a sparse message ends too early");
  const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << count) - 1));
  held_ >>= count;
  held_bits_ -= count;
  return value;
}

// Returns the number of zeros before the next 1, and consumes that 1 too.
std::uint32_t IndexReader::zeros() {
  std::uint32_t count = 0;
  for (;;) {
    fill();
    ECHELON_CHECK(held_bits_ > 0, "a sparse message ends too early");
    const int run = held_ == 0 ? held_bits_ : std::countr_zero(held_);
    if (run < held_bits_) {
      held_ >>= run;
      held_ >>= 1;
      held_bits_ -= run + 1;
      return count + static_cast<std::uint32_t>(run);
    }
    count += static_cast<std::uint32_t>(held_bits_);
    held_ = 0, held_bits_ = 0;
  }
}

std::uint32_t IndexReader::next() {
  if (format_.coding == IndexCoding::raw) return bits(32);
  std::uint32_t gap = 0;
  if (format_.coding == IndexCoding::gamma) {
    const std::uint32_t after = zeros();
    ECHELON_CHECK(after < 32, "a sparse message is damaged");
    gap = (1u << after) | bits(static_cast<int>(after));
  } else {
    const std::uint32_t quotient = zeros();
    gap = ((quotient << format_.rice_bits) | bits(format_.rice_bits)) + 1;
  }
  index_ += gap;
  const std::uint32_t extra = format_.extra ? bits(1) : 0;
  return static_cast<std::uint32_t>(index_) << 1 | extra;
}

}  // namespace echelon::inline comm
