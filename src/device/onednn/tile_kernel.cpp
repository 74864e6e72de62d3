// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/intrinsics.hpp"
#include "base/processor.hpp"
#include "device/onednn/tiles.hpp"

namespace echelon::inline device::onednn {
namespace {

const BHalf* second_of(const TileSums& at) { return at.b_second ? at.b_second : at.b + kTileElems; }

void multiply_plainly(const TileSums& at) {
  for (int r = 0; r < at.rows; ++r) {
    std::array<float, kTileBlock> sums{};
    if (at.add) std::memcpy(sums.data(), at.c + r * at.c_row, static_cast<std::size_t>(at.columns) * sizeof(float));
    for (std::int64_t step = 0; step < at.runs * at.steps; ++step) {
      const BHalf* a = at.a + tile_at(r / kTileSide, step, at.steps) + r % kTileSide * kTileDepth;
      const std::int64_t run = step / at.steps, offset = step % at.steps * at.b_step;
      for (int column = 0; column < at.columns; ++column) {
        const BHalf* tile = column < kTileSide ? at.b + run * at.b_run : second_of(at) + run * at.b_second_run;
        const BHalf* b = tile + offset + column % kTileSide * 2;
        for (std::int64_t k = 0; k < kTileDepth; ++k)
          sums[static_cast<std::size_t>(column)] += widened(a[k]) * widened(b[k / 2 * kTileDepth + k % 2]);
      }
    }
    std::memcpy(at.c + r * at.c_row, sums.data(), static_cast<std::size_t>(at.columns) * sizeof(float));
  }
}

#ifdef ECHELON_X86_BODIES
#define ECHELON_TILES __attribute__((target("amx-tile,amx-bf16")))

// The format that ldtilecfg reads (Intel's manual, volume 1, chapter 18).
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(TileShapes) == 64);

// Tiles 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns.
ECHELON_TILES void set_up(int rows) {
  TileShapes shapes;
  const auto shape = [&](std::initializer_list<std::size_t> tiles, int count) {
    for (const std::size_t tile : tiles) {
      shapes.rows[tile] = static_cast<std::uint8_t>(count);
      shapes.row_bytes[tile] = count > 0 ? kTileDepth * sizeof(BHalf) : 0;
    }
  };
  shape({0, 1, 4}, std::min<int>(rows, kTileSide));
  shape({2, 3, 5}, std::max<int>(rows - kTileSide, 0));
  shape({6, 7}, kTileSide);
  asm volatile("" : : "r"(&shapes) : "memory");  // g++ 12 assumes that the instruction reads no more than a word
  _tile_loadconfig(&shapes);
}

ECHELON_TILES void release() { _tile_release(); }

// kRows, kColumns: number of tiles of each factor.
template <int kRows, int kColumns>
ECHELON_TILES void multiply_block(const TileSums& at) {
  constexpr int kLine = kTileDepth * sizeof(BHalf);
  const auto row = static_cast<std::int64_t>(at.c_row * sizeof(float));
  float *c = at.c, *below = c + kTileSide * at.c_row;
  if (at.add) {
    _tile_loadd(0, c, row);
    if constexpr (kColumns > 1) _tile_loadd(1, c + kTileSide, row);
    if constexpr (kRows > 1) _tile_loadd(2, below, row);
    if constexpr (kRows > 1 && kColumns > 1) _tile_loadd(3, below + kTileSide, row);
  } else {
    _tile_zero(0);
    if constexpr (kColumns > 1) _tile_zero(1);
    if constexpr (kRows > 1) _tile_zero(2);
    if constexpr (kRows > 1 && kColumns > 1) _tile_zero(3);
  }
  const BHalf *a = at.a, *first = at.b, *second = second_of(at);
  for (std::int64_t run = 0; run < at.runs; ++run, first += at.b_run, second += at.b_second_run) {
    const std::int64_t apart = second - first;
    const BHalf* b = first;
    for (std::int64_t step = 0; step < at.steps; ++step, a += 2 * kTileElems, b += at.b_step) {
      _tile_loadd(6, b, kLine);
      _tile_loadd(4, a, kLine);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (kRows > 1) {
        _tile_loadd(5, a + kTileElems, kLine);
        _tile_dpbf16ps(2, 5, 6);
      }
      if constexpr (kColumns > 1) {
        _tile_loadd(7, b + apart, kLine);
        _tile_dpbf16ps(1, 4, 7);
        if constexpr (kRows > 1) _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  _tile_stored(0, c, row);
  if constexpr (kColumns > 1) _tile_stored(1, c + kTileSide, row);
  if constexpr (kRows > 1) _tile_stored(2, below, row);
  if constexpr (kRows > 1 && kColumns > 1) _tile_stored(3, below + kTileSide, row);
}

bool permitted() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
#else
// No other processor has this unit: multiplies_tiles() is false there, and a TileUnit never real.
void set_up(int) {}
void release() {}
template <int kRows, int kColumns>
void multiply_block(const TileSums& at) {
  multiply_plainly(at);
}
bool permitted() { return false; }
#endif

}  // namespace

bool multiplies_tiles() {
  static const bool usable = processor_has(Isa::amx) && permitted();
  return usable;
}

TileUnit::~TileUnit() {
  if (real_ && rows_ > 0) release();
}

void TileUnit::multiply(const TileSums& sums) {
  if (!real_) return multiply_plainly(sums);
  if (rows_ != sums.rows) set_up(rows_ = sums.rows);
  const bool tall = sums.rows > kTileSide, wide = sums.columns > kTileSide;
  if (sums.columns % kTileSide == 0)
    return (tall   ? wide ? multiply_block<2, 2> : multiply_block<2, 1>
              : wide ? multiply_block<1, 2>
                   : multiply_block<1, 1>)(sums);
  alignas(64) std::array<float, kTileBlock * kTileBlock> whole;
  TileSums block = sums;
  block.columns = wide ? kTileBlock : kTileSide;
  block.c = whole.data();
  block.c_row = kTileBlock;
  const auto bytes = static_cast<std::size_t>(sums.columns) * sizeof(float);
  const auto copy = [&](auto&& body) {
    for (int r = 0; r < sums.rows; ++r) body(sums.c + r * sums.c_row, whole.data() + r * kTileBlock);
  };
  if (sums.add) {
    whole.fill(0.0f);
    copy([&](const float* c, float* row) { std::memcpy(row, c, bytes); });
  }
  multiply(block);
  copy([&](float* c, const float* row) { std::memcpy(c, row, bytes); });
}

}  // namespace echelon::inline device::onednn
