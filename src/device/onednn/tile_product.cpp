#include "device/onednn/tile_product.hpp"

#include <omp.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace echelon::inline device::onednn {
namespace {

// Of the right factor, what all rows pass by before the next: half of a core's second cache.
constexpr std::int64_t kGroupBytes = std::int64_t{1} << 20;
// Below this many products of two numbers a team costs more than it saves.
constexpr std::int64_t kParallelProducts = std::int64_t{1} << 22;

}  // namespace

TileProduct::TileProduct(Device& device, const TileProductForm& form, ScratchPlan& scratch)
    : form_(form), steps_(tile_steps(form.a.depth)), a_at_(scratch.take(tile_bytes(form.a.extent, form.a.depth))) {
  ECHELON_CHECK_EQ(form.a.depth, form.b.depth);
  const std::size_t bytes = tile_bytes(form.b.extent, form.b.depth);
  if (!form.weights) {
    b_at_ = scratch.take(bytes);
    return;
  }
  packed_ = std::make_shared<Packed>();
  packed_->memory = device.allocate(bytes, "packed weights");
}

void TileProduct::share(const TileProduct& other) {
  if (packed_ && other.packed_ && form_.b == other.form_.b) packed_ = other.packed_;
}

bool TileProduct::worth_a_team() const {
  return form_.threads > 1 && form_.a.extent * form_.b.extent * form_.a.depth >= kParallelProducts;
}

void TileProduct::run(const void* a, const void* b, void* c, bool add, std::uint64_t version, const float* bias,
                      std::byte* scratch) {
  auto* left = reinterpret_cast<BHalf*>(scratch + a_at_);
  auto* right = packed_ ? static_cast<BHalf*>(packed_->memory.data()) : reinterpret_cast<BHalf*>(scratch + b_at_);
  const bool packs = !packed_ || b != packed_->source || version != packed_->version;
  const Job job{left, right, c, {.lines = form_.c, .bias = bias, .add = add}};
  backwards_ = !backwards_;
#pragma omp parallel num_threads(form_.threads) if (worth_a_team())
  {
#pragma omp for nowait
    for (std::int64_t strip = 0; strip < form_.a.strips(); ++strip) pack_tiles(form_.a, a, strip, left, form_.real);
    if (packs) {
#pragma omp for nowait
      for (std::int64_t strip = 0; strip < form_.b.strips(); ++strip) pack_tiles(form_.b, b, strip, right, form_.real);
    }
#pragma omp barrier
    multiply(job, omp_get_thread_num(), omp_get_num_threads());
  }
  if (!packed_) return;
  packed_->source = b;
  packed_->version = version;
}

// A team shares the rows, or the columns where there are fewer blocks of rows than members. Every second run goes
// through the columns backwards: it starts with the weights that the run before left in cache.
void TileProduct::multiply(const Job& job, std::int64_t member, std::int64_t team) const {
  const std::int64_t rows = tile_blocks(form_.a.extent), columns = tile_blocks(form_.b.extent);
  const auto share = [&](std::int64_t blocks) {
    return std::pair(blocks * member / team, blocks * (member + 1) / team);
  };
  const auto whole = [](std::int64_t blocks) { return std::pair(std::int64_t{0}, blocks); };
  const auto [first_row, end_row] = rows >= team ? share(rows) : whole(rows);
  const auto [first, end] = rows >= team ? whole(columns) : share(columns);
  const std::int64_t block_bytes = steps_ * 2 * kTileElems * static_cast<std::int64_t>(sizeof(BHalf));
  const std::int64_t group = std::max<std::int64_t>(1, kGroupBytes / block_bytes);
  TileUnit unit(form_.real);
  for (std::int64_t begin = first; begin < end; begin += group)
    for (std::int64_t row = first_row; row < end_row; ++row)
      for (std::int64_t column = begin; column < std::min(begin + group, end); ++column)
        multiply_block(unit, job, row, backwards_ ? first + end - 1 - column : column);
}

void TileProduct::multiply_block(TileUnit& unit, const Job& job, std::int64_t row_block,
                                 std::int64_t column_block) const {
  const std::int64_t row = row_block * kTileBlock, column = column_block * kTileBlock;
  const std::int64_t block = steps_ * 2 * kTileElems;
  TileSums sums{.a = job.a + row_block * block, .b = job.b + column_block * block, .steps = steps_};
  sums.rows = static_cast<int>(std::min(kTileBlock, form_.a.extent - row));
  sums.columns = static_cast<int>(std::min(kTileBlock, form_.b.extent - column));
  const Lines& lines = form_.c;
  auto* to = static_cast<std::byte*>(job.c) +
             static_cast<std::size_t>(column) * (lines.halves ? sizeof(BHalf) : sizeof(float));
  if (!lines.halves && !job.result.bias && lines.inner == Lines{}.inner) {
    sums.c = reinterpret_cast<float*>(to + lines.bytes_to(row));
    sums.c_row = lines.step;
    sums.add = job.result.add;
    return unit.multiply(sums);
  }
  alignas(64) std::array<float, kTileBlock * kTileBlock> here;
  const int columns = sums.columns;
  sums.c = here.data();
  sums.c_row = kTileBlock;
  sums.columns = columns > kTileSide ? kTileBlock : kTileSide;
  unit.multiply(sums);
  TileResult result = job.result;
  if (result.bias) result.bias += column;
  finish_tiles(result, here.data(), row, sums.rows, columns, to, form_.real);
}

}  // namespace echelon::inline device::onednn
