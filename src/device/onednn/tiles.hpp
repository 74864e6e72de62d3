// SPDX-License-Identifier: Apache-2.0
// Products of bf16 by the matrix unit of a core (AMX): the format of tiles, and the innermost loop of a product.
//
// A tile holds 16 rows of 64 bytes. For the left factor these are 16 rows of 32 elements of the depth; for the right
// factor 16 pairs of elements by 16 columns, with both elements of a pair adjacent. A factor is kept in tiles as
//
//   (blocks of 32 rows or columns, steps of 32 elements of the depth, 2 tiles, 16, 32)
//
// with zeros beyond its extents, so that a block of sums reads both factors from front to end. All eight tiles are
// used: four of sums, two of rows and two of columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/onednn/halves.hpp"

namespace echelon::inline device::onednn {

inline constexpr std::int64_t kTileSide = 16, kTileDepth = 32, kTileBlock = 2 * kTileSide;
inline constexpr std::int64_t kTileElems = kTileSide * kTileDepth;

// Whether the processor multiplies tiles of bf16 and the operating system lets this process use them.
bool multiplies_tiles();

// With fewer multiplications, a team costs more than it saves.
inline constexpr std::int64_t kParallelProducts = std::int64_t{1} << 22;

constexpr std::int64_t tile_blocks(std::int64_t rows) { return (rows + kTileBlock - 1) / kTileBlock; }
constexpr std::int64_t tile_steps(std::int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }
// Offset of tile `side` (16 rows or columns) at a step from the factor's start.
constexpr std::int64_t tile_at(std::int64_t side, std::int64_t step, std::int64_t steps) {
  return ((side / 2 * steps + step) * 2 + side % 2) * kTileElems;
}
constexpr std::size_t tile_bytes(std::int64_t rows, std::int64_t depth) {
  return static_cast<std::size_t>(tile_blocks(rows) * tile_steps(depth) * 2 * kTileElems) * sizeof(BHalf);
}

// A matrix in memory, as lines of f32 or bf16: line i starts (i % inner) * step + (i / inner) * outer elements after
// the first.
struct Lines {
  bool halves = false;
  std::int64_t step = 0;  // elements
  std::int64_t inner = INT64_MAX, outer = 0;
  friend bool operator==(const Lines&, const Lines&) = default;

  std::size_t bytes_to(std::int64_t line) const {
    const std::int64_t elems = inner == INT64_MAX ? line * step : line / inner * outer + line % inner * step;
    return static_cast<std::size_t>(elems) * (halves ? sizeof(BHalf) : sizeof(float));
  }
};

// A factor whose lines are its rows or its columns.
struct TileSource {
  Lines lines;
  std::int64_t extent = 0, depth = 0;  // rows of a left factor, or columns of a right one; elements of the depth
  bool left = true;
  bool lines_by_depth = false;  // a line is an element of the depth; else a row of a left factor or a column of a right
  friend bool operator==(const TileSource&, const TileSource&) = default;

  // Number of strips of lines, which are packed independently.
  std::int64_t strips() const { return lines_by_depth ? tile_steps(depth) : (extent + kTileSide - 1) / kTileSide; }
};
// `wide`: uses AVX-512, with the same bits, except that subnormal numbers become 0.
void pack_tiles(const TileSource& source, const void* from, std::int64_t strip, BHalf* to, bool wide);
// 16 elements of some lines of bf16; null lines are zeros.
struct TileLines {
  const BHalf* const* lines;
  std::int64_t offset, count;  // the first of the elements, and how many of them there are; the others are zeros
  const BHalf* at(std::int64_t line) const { return lines[line] ? lines[line] + offset : nullptr; }
  const std::byte* line(std::int64_t i) const { return reinterpret_cast<const std::byte*>(at(i)); }
};
// Packs 32 lines as the depth of 16 rows; or `lines` of them, an even number, as the depth of 16 columns.
void pack_left_tile(const TileLines& from, BHalf* to, bool wide);
void pack_right_tile(const TileLines& from, std::int64_t lines, BHalf* to, bool wide);

// A block of up to 32 x 32 sums.
struct TileSums {
  const BHalf *a = nullptr, *b = nullptr;  // one block each
  std::int64_t steps = 0;
  // Right factors that are not blocks: the second tile of columns, the distance between steps, and `runs` of `steps`
  // steps each, whose columns begin anywhere. The left factor has all runs one behind the other.
  const BHalf* b_second = nullptr;
  std::int64_t b_step = 2 * kTileElems;
  std::int64_t runs = 1, b_run = 0, b_second_run = 0;
  int rows = 0, columns = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;  // distance between rows, in floats
  bool add = false;
};

// Owns the tiles of the calling thread during its lifetime.
class TileUnit {
 public:
  // `real`: uses the matrix unit, which must exist; else plain loops.
  explicit TileUnit(bool real) : real_(real) {}
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;
  ~TileUnit();
  void multiply(const TileSums& sums);

 private:
  bool real_;
  int rows_ = 0;  // number of rows that the tiles are configured for
};

// The destination of a block's sums, if they are not added to f32 rows.
struct TileResult {
  Lines lines;                  // memory of the result
  const float* bias = nullptr;  // by columns of the block, or null
  bool add = false;
};
// Writes rows of 32 sums each to lines [first, first + rows) of the result, starting at the column that `to` points to.
void finish_tiles(const TileResult& result, const float* sums, std::int64_t first, int rows, int columns, void* to,
                  bool wide);

}  // namespace echelon::inline device::onednn
