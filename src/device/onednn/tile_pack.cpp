// SPDX-License-Identifier: Apache-2.0
// Packs factors into tiles and writes sums from tiles to the result.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/intrinsics.hpp"
#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/tiles.hpp"

// g++ 12 warns about the undefined parts of its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace echelon::inline device::onednn {
namespace {

// The source of a tile: `count` elements of up to kTileDepth lines, from an offset on.
struct TilePart {
  std::array<const std::byte*, kTileDepth> lines{};
  std::int64_t live = 0, count = 0;
  std::size_t offset = 0;

  const std::byte* line(std::int64_t i) const {
    return i < live ? lines[static_cast<std::size_t>(i)] + offset : nullptr;
  }
};

BHalf element(const std::byte* line, bool halves, std::int64_t i) {
  if (halves) return reinterpret_cast<const BHalf*>(line)[i];
  return rounded(reinterpret_cast<const float*>(line)[i]);
}

void pack_plainly(const TileSource& source, const TilePart& part, BHalf* to) {
  for (std::int64_t side = 0; side < kTileSide; ++side)
    for (std::int64_t k = 0; k < kTileDepth; ++k) {
      const std::byte* line = part.line(source.lines_by_depth ? k : side);
      const std::int64_t i = source.lines_by_depth ? side : k;
      const std::int64_t at = source.left ? side * kTileDepth + k : k / 2 * kTileDepth + 2 * side + k % 2;
      to[at] = line && i < part.count ? element(line, source.lines.halves, i) : BHalf{0};
    }
}

void finish_plainly(const TileResult& result, const float* sums, std::int64_t first, int rows, int columns,
                    std::byte* to) {
  for (int r = 0; r < rows; ++r) {
    std::byte* line = to + result.lines.bytes_to(first + r);
    for (int column = 0; column < columns; ++column) {
      float sum = sums[r * kTileBlock + column] + (result.bias ? result.bias[column] : 0.0f);
      if (result.lines.halves) {
        BHalf& at = reinterpret_cast<BHalf*>(line)[column];
        at = rounded(result.add ? sum + widened(at) : sum);
      } else {
        float& at = reinterpret_cast<float*>(line)[column];
        at = result.add ? sum + at : sum;
      }
    }
  }
}

using Packer = void (*)(const TilePart&, BHalf*);

#ifdef ECHELON_X86_BODIES
#define ECHELON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

// Loads 16 elements of a line as bf16.
ECHELON_AVX512 inline __m256i sixteen(const std::byte* line, bool halves, __mmask16 mask) {
  if (halves) return _mm256_maskz_loadu_epi16(mask, line);
  return (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, line));
}

// Loads 32 elements of the depth of one row or column.
ECHELON_AVX512 inline __m512i run_of(const std::byte* line, bool halves, __mmask32 mask) {
  if (!line) return _mm512_setzero_si512();
  if (halves) return _mm512_maskz_loadu_epi16(mask, line);
  const __m512 upper = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), line + kTileSide * sizeof(float));
  return (__m512i)_mm512_cvtne2ps_pbh(upper, _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), line));
}

// Loads two elements of the depth of 16 rows or columns.
ECHELON_AVX512 inline __m512i pairs_of(const std::byte* even, const std::byte* odd, bool halves, __mmask16 mask) {
  __m512i pairs = _mm512_setzero_si512();
  if (even) pairs = _mm512_cvtepu16_epi32(sixteen(even, halves, mask));
  if (odd) pairs = _mm512_or_si512(pairs, _mm512_slli_epi32(_mm512_cvtepu16_epi32(sixteen(odd, halves, mask)), 16));
  return pairs;
}

// Transposes 16 rows of 16 words.
ECHELON_AVX512 inline void turn(__m512i (&r)[16]) {
  __m512i t[16];
  ECHELON_UNROLLED (i, 8) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  ECHELON_UNROLLED (i, 4) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  ECHELON_UNROLLED (i, 4) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
  ECHELON_UNROLLED (i, 4) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// The rows that are read are pairs of elements of the depth, or rows or columns of the factor; kTurn transposes them.
template <bool kByDepth, bool kHalves, bool kTurn, class Part = TilePart>
ECHELON_AVX512 void pack_512(const Part& part, BHalf* to) {
  const auto mask = static_cast<__mmask32>((std::uint64_t{1} << part.count) - 1);
  __m512i rows[16];
  ECHELON_UNROLLED (i, 16) {
    if constexpr (kByDepth)
      rows[i] = pairs_of(part.line(2 * i), part.line(2 * i + 1), kHalves, static_cast<__mmask16>(mask));
    else
      rows[i] = run_of(part.line(i), kHalves, mask);
  }
  if constexpr (kTurn) turn(rows);
  ECHELON_UNROLLED (i, 16) _mm512_store_si512(to + i * kTileDepth, rows[i]);
}

Packer packer_of(const TileSource& source) {
  if (source.left)
    return source.lines_by_depth ? source.lines.halves ? pack_512<true, true, true> : pack_512<true, false, true>
           : source.lines.halves ? pack_512<false, true, false>
                                 : pack_512<false, false, false>;
  return source.lines_by_depth ? source.lines.halves ? pack_512<true, true, false> : pack_512<true, false, false>
         : source.lines.halves ? pack_512<false, true, true>
                               : pack_512<false, false, true>;
}

constexpr auto pack_left_512 = pack_512<true, true, true, TileLines>;

ECHELON_AVX512 void pack_right_512(const TileLines& from, std::int64_t lines, BHalf* to) {
  const auto mask = static_cast<__mmask16>((1U << from.count) - 1U);
  for (std::int64_t k = 0; k < lines; k += 2)
    _mm512_store_si512(to + k * kTileSide, pairs_of(from.line(k), from.line(k + 1), true, mask));
}

ECHELON_AVX512 void finish_512(const TileResult& result, const float* sums, std::int64_t first, int rows, int columns,
                               std::byte* to) {
  for (int begin = 0; begin < columns; begin += kTileSide) {
    const auto mask = static_cast<__mmask16>((1U << std::min<int>(columns - begin, kTileSide)) - 1U);
    const __m512 bias = result.bias ? _mm512_maskz_loadu_ps(mask, result.bias + begin) : _mm512_setzero_ps();
    for (int r = 0; r < rows; ++r) {
      std::byte* line = to + result.lines.bytes_to(first + r);
      __m512 sum = _mm512_add_ps(_mm512_load_ps(sums + r * kTileBlock + begin), bias);
      if (result.lines.halves) {
        auto* at = reinterpret_cast<BHalf*>(line) + begin;
        if (result.add) {
          const __m512i before = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at)), 16);
          sum = _mm512_add_ps(sum, (__m512)before);
        }
        _mm256_mask_storeu_epi16(at, mask, (__m256i)_mm512_cvtneps_pbh(sum));
      } else {
        auto* at = reinterpret_cast<float*>(line) + begin;
        if (result.add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, at));
        _mm512_mask_storeu_ps(at, mask, sum);
      }
    }
  }
}
#else
// No other processor has AVX-512: `wide` is false there.
Packer packer_of(const TileSource&) { return nullptr; }
void pack_left_512(const TileLines&, BHalf*) {}
void pack_right_512(const TileLines&, std::int64_t, BHalf*) {}
constexpr auto finish_512 = finish_plainly;
#endif

}  // namespace

void pack_tiles(const TileSource& source, const void* from, std::int64_t strip, BHalf* to, bool wide) {
  const bool by_depth = source.lines_by_depth;
  const std::int64_t deep = by_depth ? kTileDepth : kTileSide, across = by_depth ? kTileSide : kTileDepth;
  const std::int64_t lines = by_depth ? source.depth : source.extent, elems = by_depth ? source.extent : source.depth;
  const std::int64_t steps = tile_steps(source.depth);
  const Packer packer = wide ? packer_of(source) : nullptr;
  TilePart part;
  part.live = std::min(deep, lines - strip * deep);
  for (std::int64_t i = 0; i < part.live; ++i)
    part.lines[static_cast<std::size_t>(i)] =
        static_cast<const std::byte*>(from) + source.lines.bytes_to(strip * deep + i);
  const std::size_t bytes = static_cast<std::size_t>(across) * (source.lines.halves ? sizeof(BHalf) : sizeof(float));
  for (std::int64_t tile = 0; tile * across < elems; ++tile, part.offset += bytes) {
    part.count = std::min(across, elems - tile * across);
    BHalf* at = to + (by_depth ? tile_at(tile, strip, steps) : tile_at(strip, tile, steps));
    wide ? packer(part, at) : pack_plainly(source, part, at);
  }
}

void pack_left_tile(const TileLines& from, BHalf* to, bool wide) {
  if (wide) return pack_left_512(from, to);
  for (std::int64_t k = 0; k < kTileDepth; ++k)
    for (std::int64_t i = 0; i < kTileSide; ++i)
      to[i * kTileDepth + k] = from.at(k) && i < from.count ? from.at(k)[i] : BHalf{0};
}

void pack_right_tile(const TileLines& from, std::int64_t lines, BHalf* to, bool wide) {
  if (wide) return pack_right_512(from, lines, to);
  for (std::int64_t k = 0; k < lines; ++k)
    for (std::int64_t i = 0; i < kTileSide; ++i)
      to[k / 2 * kTileDepth + 2 * i + k % 2] = from.at(k) && i < from.count ? from.at(k)[i] : BHalf{0};
}

void finish_tiles(const TileResult& result, const float* sums, std::int64_t first, int rows, int columns, void* to,
                  bool wide) {
  (wide ? finish_512 : finish_plainly)(result, sums, first, rows, columns, static_cast<std::byte*>(to));
}

}  // namespace echelon::inline device::onednn
