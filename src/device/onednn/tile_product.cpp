// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/tile_product.hpp"

#include <omp.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace echelon::inline device::onednn {
namespace {

// The part of the right factor that all rows use before the next part: half of a core's L2 cache.
constexpr std::int64_t kGroupBytes = std::int64_t{1} << 20;
// A depth of more steps than kMostSteps is split into parts of kPartSteps, so that a block of either factor stays in
// cache.
constexpr std::int64_t kMostSteps = 96, kPartSteps = 32;

}  // namespace

TileProduct::TileProduct(Device& device, const TileProductForm& form, ScratchPlan& scratch)
    : form_(form),
      steps_(tile_steps(form.a.depth)),
      part_(steps_ > kMostSteps ? kPartSteps : steps_),
      a_at_(form.same_left ? form.same_left->a_at_ : scratch.take(tile_bytes(form.a.extent, form.a.depth))) {
  ECHELON_CHECK_EQ(form.a.depth, form.b.depth);
  if (form.same_left)
    ECHELON_CHECK(form.a == form.same_left->form_.a,
                  "products that share a left factor must have the same left factor");
  if (part_ < steps_ && (form.c.halves || form.weights || form.c.inner != Lines{}.inner))
    sums_at_ = scratch.take(
        static_cast<std::size_t>(tile_blocks(form.a.extent) * tile_blocks(form.b.extent) * kTileBlock * kTileBlock) *
        sizeof(float));
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

bool TileProduct::worth_a_team(std::int64_t rows) const {
  return form_.threads > 1 && rows * form_.b.extent * form_.a.depth >= kParallelProducts;
}

void TileProduct::run(const ProductArgs& args) {
  ECHELON_CHECK(form_.weights || !args.bias, "only a product with weights can have a bias");
  auto* left = reinterpret_cast<BHalf*>(args.scratch + a_at_);
  auto* right = packed_ ? static_cast<BHalf*>(packed_->memory.data()) : reinterpret_cast<BHalf*>(args.scratch + b_at_);
  const bool packs = !packed_ || args.b != packed_->source || args.version != packed_->version;
  TileSource a = form_.a;
  if (args.rows > 0) a.extent = args.rows;
  const std::int64_t left_strips = form_.same_left ? 0 : a.strips();
  auto* sums = reinterpret_cast<float*>(args.scratch + sums_at_);
  const Job job{left, right, args.c, a.extent, sums, {.lines = form_.c, .bias = args.bias, .add = args.add}};
  backwards_ = !backwards_;
#pragma omp parallel num_threads(form_.threads) if (worth_a_team(a.extent))
  {
#pragma omp for nowait
    for (std::int64_t strip = 0; strip < left_strips; ++strip) pack_tiles(a, args.a, strip, left, form_.real);
    if (packs) {
#pragma omp for nowait
      for (std::int64_t strip = 0; strip < form_.b.strips(); ++strip)
        pack_tiles(form_.b, args.b, strip, right, form_.real);
    }
#pragma omp barrier
    multiply(job, omp_get_thread_num(), omp_get_num_threads());
  }
  if (!packed_) return;
  packed_->source = args.b;
  packed_->version = args.version;
}

// A team shares the rows, or the columns if there are fewer blocks of rows than members. Every second run goes through
// the columns backwards, so that it starts with the weights that the previous run left in cache.
void TileProduct::multiply(const Job& job, std::int64_t member, std::int64_t team) const {
  const std::int64_t rows = tile_blocks(job.rows), columns = tile_blocks(form_.b.extent);
  const auto share = [&](std::int64_t blocks) {
    return std::pair(blocks * member / team, blocks * (member + 1) / team);
  };
  const auto whole = [](std::int64_t blocks) { return std::pair(std::int64_t{0}, blocks); };
  const auto [first_row, end_row] = rows >= team ? share(rows) : whole(rows);
  const auto [first, end] = rows >= team ? whole(columns) : share(columns);
  const std::int64_t block_bytes = part_ * 2 * kTileElems * static_cast<std::int64_t>(sizeof(BHalf));
  const std::int64_t group = std::max<std::int64_t>(1, kGroupBytes / block_bytes);
  TileUnit unit(form_.real);
  for (std::int64_t step = 0; step < steps_; step += part_)
    for (std::int64_t begin = first; begin < end; begin += group)
      for (std::int64_t row = first_row; row < end_row; ++row)
        for (std::int64_t column = begin; column < std::min(begin + group, end); ++column)
          multiply_block(unit, job, {row, backwards_ ? first + end - 1 - column : column, step});
}

bool TileProduct::in_result(const Job& job) const {
  return !form_.c.halves && !job.result.bias && form_.c.inner == Lines{}.inner;
}

void TileProduct::multiply_block(TileUnit& unit, const Job& job, const Block& block) const {
  const std::int64_t row = block.row * kTileBlock, column = block.column * kTileBlock, step = 2 * kTileElems;
  TileSums sums{.a = job.a + (block.row * steps_ + block.step) * step,
                .b = job.b + (block.column * steps_ + block.step) * step,
                .steps = std::min(part_, steps_ - block.step),
                .add = block.step > 0};
  sums.rows = static_cast<int>(std::min(kTileBlock, job.rows - row));
  sums.columns = static_cast<int>(std::min(kTileBlock, form_.b.extent - column));
  const Lines& lines = form_.c;
  auto* to = static_cast<std::byte*>(job.c) +
             static_cast<std::size_t>(column) * (lines.halves ? sizeof(BHalf) : sizeof(float));
  if (in_result(job)) {
    sums.c = reinterpret_cast<float*>(to + lines.bytes_to(row));
    sums.c_row = lines.step;
    sums.add = sums.add || job.result.add;
    return unit.multiply(sums);
  }
  alignas(64) std::array<float, kTileBlock * kTileBlock> here;
  const int columns = sums.columns;
  sums.c = part_ == steps_
               ? here.data()
               : job.sums + (block.row * tile_blocks(form_.b.extent) + block.column) * kTileBlock * kTileBlock;
  sums.c_row = kTileBlock;
  sums.columns = columns > kTileSide ? kTileBlock : kTileSide;
  unit.multiply(sums);
  if (block.step + part_ < steps_) return;
  TileResult result = job.result;
  if (result.bias) result.bias += column;
  finish_tiles(result, sums.c, row, sums.rows, columns, to, form_.real);
}

}  // namespace echelon::inline device::onednn
