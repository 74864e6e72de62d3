// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/float_block.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "base/vectors.hpp"
#include "comm/codec/lanes.hpp"
#include "comm/codec/select.hpp"

namespace echelon::inline comm {
namespace {

enum Kind : std::uint8_t { whole, dense, sparse, nothing };

struct Head {
  std::uint8_t largest = 0, kind = whole, exceptions = 0, none = 0;
};

constexpr std::int64_t kGroup = 32;  // values whose nibbles are computed together
constexpr std::size_t kBitmap = kFloatBlock / 8;
constexpr std::int64_t kFewestZeros = 10;  // each zero saves 28 bits, ten of them pay for the 256 bits of the map
constexpr std::uint32_t kFar = 15;
constexpr std::int64_t kMostExceptions = 64;

using Words = std::array<std::uint32_t, kFloatBlock + kGroup>;

std::size_t nibble_bytes(std::int64_t m) { return static_cast<std::size_t>((m + 1) / 2); }
std::size_t packed_bytes(std::int64_t m) { return static_cast<std::size_t>(3 * m) + nibble_bytes(m); }

__m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
void store(void* at, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(at), value); }

struct BlockScan {
  std::uint32_t largest = 0;  // largest exponent
  std::int64_t nonzero = 0;
  std::array<std::uint8_t, kBitmap> bits;  // set where a value is not 0
};

BlockScan scan_block(const float* values) {
  BlockScan scan;
  __m256i most = _mm256_setzero_si256();
  for (std::size_t i = 0; i < kBitmap; ++i) {
    const float* at = values + kLanes * static_cast<std::int64_t>(i);
    fetch_ahead(at, 2 * kFloatBlock);
    const __m256i bits = load(at);
    most = _mm256_max_epi32(most, _mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000)));
    const unsigned mask = ~mask_of(_mm256_cmpeq_epi32(bits, _mm256_setzero_si256())) & 0xff;
    scan.bits[i] = static_cast<std::uint8_t>(mask);
    scan.nonzero += std::popcount(mask);
  }
  scan.largest = static_cast<std::uint32_t>(largest_lane(most)) >> 23;
  return scan;
}

// Writes the values that are not 0, in order, followed by zeros up to the end of a group.
void drop_zeros(const float* values, const BlockScan& scan, Words& words) {
  std::size_t m = 0;
  for (std::size_t i = 0; i < kBitmap; ++i) {
    store(words.data() + m, to_front(load(values + kLanes * static_cast<std::int64_t>(i)), scan.bits[i]));
    m += static_cast<std::size_t>(std::popcount(scan.bits[i]));
  }
  std::fill_n(words.begin() + static_cast<std::ptrdiff_t>(m), kGroup, 0u);
}

// Writes sign and mantissa of eight values: 24 bytes, followed by 8 bytes of padding.
void store_low_24(std::byte* to, __m256i words) {
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(words, 8), _mm256_set1_epi32(0x800000));
  const __m256i low = _mm256_or_si256(sign, _mm256_and_si256(words, _mm256_set1_epi32(0x7fffff)));
  const __m256i three = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,  //
                                         0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m256i apart = _mm256_shuffle_epi8(low, three);
  store(to, _mm256_permutevar8x32_epi32(apart, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7)));
}

__m256i load_low_24(const std::byte* from) {
  const __m256i apart = _mm256_permutevar8x32_epi32(load(from), _mm256_setr_epi32(0, 1, 2, 6, 3, 4, 5, 7));
  const __m256i four = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  const __m256i low = _mm256_shuffle_epi8(apart, four);
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(low, 8), _mm256_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm256_or_si256(sign, _mm256_and_si256(low, _mm256_set1_epi32(0x7fffff)));
}

// Distances of 32 exponents from the largest, limited to 15, one per byte.
__m256i distances(const std::uint32_t* words, std::uint32_t largest) {
  const __m256i top = _mm256_set1_epi32(static_cast<int>(largest));
  __m256i d[4];
  for (int v = 0; v < 4; ++v) {
    const __m256i exponent = _mm256_and_si256(_mm256_srli_epi32(load(words + 8 * v), 23), _mm256_set1_epi32(0xff));
    d[v] = _mm256_min_epi32(_mm256_sub_epi32(top, exponent), _mm256_set1_epi32(kFar));
  }
  return bytes_of(d);
}

// Packs pairs of bytes below 16 into one byte each, the first of a pair in the low half.
__m128i nibbles_of(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x1001));
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0b1000));
}

__m256i bytes_of_nibbles(__m128i nibbles) {
  const __m128i low = _mm_and_si128(nibbles, _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi16(nibbles, 4), _mm_set1_epi8(15));
  return _mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high));
}

// Returns which of the `n` values of a group are exceptions.
std::uint32_t far_ones(__m256i bytes, std::int64_t n) {
  const auto all = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(kFar))));
  return n < kGroup ? all & ((1u << n) - 1) : all;
}

std::size_t pack_whole(const float* values, std::byte* to) {
  const Head head;
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, values, kFloatBlock * sizeof(float));
  return sizeof head + kFloatBlock * sizeof(float);
}

// Moves the lanes of `packed` back to the positions of the mask, with 0 elsewhere.
__m256i spread(const std::uint32_t* packed, unsigned mask) {
  const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), lane), lane);
  const __m128i order = _mm_cvtsi64_si128(static_cast<long long>(kBackOrder[mask]));
  return _mm256_and_si256(set, _mm256_permutevar8x32_epi32(load(packed), _mm256_cvtepu8_epi32(order)));
}

void put_zeros(const Words& words, const std::byte* bits, float* values) {
  const std::uint32_t* next = words.data();
  for (std::size_t i = 0; i < kBitmap; ++i) {
    const auto mask = static_cast<unsigned>(bits[i]);
    store(values + kLanes * static_cast<std::int64_t>(i), spread(next, mask));
    next += std::popcount(mask);
  }
}

void unpack_words(const Head& head, const std::byte* from, std::int64_t m, Words& words) {
  const std::byte *exception = from, *low = from + head.exceptions, *nibbles = low + 3 * m;
  for (std::int64_t i = 0; i < m; i += kGroup) {
    const __m256i d = bytes_of_nibbles(_mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles + i / 2)));
    alignas(32) std::uint8_t each[kGroup];
    store(each, d);
    for (std::int64_t v = 0; v < kGroup; v += kLanes) {
      fetch_ahead(low + 3 * (i + v), 6 * kFloatBlock);
      const __m256i steps = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(each + v)));
      const __m256i below = _mm256_sub_epi32(_mm256_set1_epi32(head.largest), steps);
      const __m256i exponent = _mm256_slli_epi32(_mm256_and_si256(below, _mm256_set1_epi32(0xff)), 23);
      store(words.data() + i + v, _mm256_or_si256(load_low_24(low + 3 * (i + v)), exponent));
    }
    for (std::uint32_t far = far_ones(d, m - i); far != 0; far &= far - 1) {
      ECHELON_CHECK(exception < low, "a message of blocks is damaged");
      std::uint32_t& word = words[static_cast<std::size_t>(i + std::countr_zero(far))];
      word = (word & 0x807fffffu) | static_cast<std::uint32_t>(*exception++) << 23;
    }
  }
}

}  // namespace

std::size_t pack_block(const float* values, std::byte* to) {
  const BlockScan scan = scan_block(values);
  const bool drops = kFloatBlock - scan.nonzero >= kFewestZeros;
  Head head{.largest = static_cast<std::uint8_t>(scan.largest), .kind = drops ? sparse : dense};
  if (scan.nonzero == 0) head.kind = nothing;
  std::size_t at = sizeof head;
  if (head.kind == nothing) return std::memcpy(to, &head, at), at;
  Words words;
  if (drops) {
    drop_zeros(values, scan, words);
    std::memcpy(to + at, scan.bits.data(), kBitmap);
    at += kBitmap;
  } else {
    std::memcpy(words.data(), values, kFloatBlock * sizeof(float));
  }
  const std::int64_t m = drops ? scan.nonzero : kFloatBlock;
  std::array<std::byte, kFloatBlock / 2 + kGroup> nibbles;
  std::int64_t exceptions = 0;
  for (std::int64_t i = 0; i < m; i += kGroup) {
    const __m256i d = distances(words.data() + i, scan.largest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(nibbles.data() + i / 2), nibbles_of(d));
    for (std::uint32_t far = far_ones(d, m - i); far != 0; far &= far - 1, ++exceptions) {
      if (exceptions == kMostExceptions) return pack_whole(values, to);
      to[at++] = static_cast<std::byte>(words[static_cast<std::size_t>(i + std::countr_zero(far))] >> 23);
    }
  }
  head.exceptions = static_cast<std::uint8_t>(exceptions);
  for (std::int64_t i = 0; i < m; i += kLanes) store_low_24(to + at + 3 * i, load(words.data() + i));
  at += static_cast<std::size_t>(3 * m);
  std::memcpy(to + at, nibbles.data(), nibble_bytes(m));
  std::memcpy(to, &head, sizeof head);
  return at + nibble_bytes(m);
}

std::size_t unpack_block(const std::byte* from, std::size_t bytes, float* values) {
  Head head;
  std::size_t at = sizeof head;
  const auto need = [&](std::size_t more) { ECHELON_CHECK_LE(at + more, bytes, "a message of blocks is damaged"); };
  ECHELON_CHECK_LE(at, bytes, "a message of blocks is damaged");
  std::memcpy(&head, from, at);
  if (head.kind == nothing) return std::memset(values, 0, kFloatBlock * sizeof(float)), at;
  if (head.kind == whole) {
    need(kFloatBlock * sizeof(float));
    std::memcpy(values, from + at, kFloatBlock * sizeof(float));
    return at + kFloatBlock * sizeof(float);
  }
  const std::byte* bits = from + at;
  std::int64_t m = kFloatBlock;
  if (head.kind == sparse) {
    need(kBitmap);
    m = 0;
    for (std::size_t i = 0; i < kBitmap; ++i) m += std::popcount(static_cast<unsigned>(bits[i]));
    at += kBitmap;
  }
  need(head.exceptions + packed_bytes(m));
  Words words;
  unpack_words(head, from + at, m, words);
  if (head.kind == dense)
    std::memcpy(values, words.data(), kFloatBlock * sizeof(float));
  else
    put_zeros(words, bits, values);
  return at + head.exceptions + packed_bytes(m);
}

}  // namespace echelon::inline comm
