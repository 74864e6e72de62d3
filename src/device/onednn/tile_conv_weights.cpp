// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/tile_conv_weights.hpp"

#include <omp.h>

#include <algorithm>
#include <array>

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kSteps = 32;                 // of the depth that are packed at a time, about
constexpr std::int64_t kPairElems = 2 * kTileSide;  // of two lines, in one tile of columns
constexpr BHalf kOne = 0x3f80;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

TileConvWeights::TileConvWeights(const ConvDims& d, int threads, bool real, ScratchPlan& scratch)
    : d_(d), O_(d.out().d), P_(d.P()), Q_(d.Q()), pairs_((Q_ + 1) / 2), threads_(threads), real_(real) {
  band_rows_ = std::clamp<std::int64_t>(kSteps * kTileDepth / (2 * pairs_), 1, P_);
  bands_of_slice_ = quotient_up(P_, band_rows_);
  steps_ = tile_steps(band_rows_ * 2 * pairs_);
  bands_ = std::min(d.N * O_ * bands_of_slice_, quotient_up(kSteps, steps_));
  tiles_ = quotient_up(d.kernel.w * d.C, kTileSide);
  columns_ = tile_blocks((d.kernel.h * tiles_ + (d.bias ? 1 : 0)) * kTileSide) * kTileBlock;

  std::int64_t elems = 0;
  for (std::int64_t first = 0; first < d.stride.h; ++first) {
    Phase phase{first, 0, elems};
    for (std::int64_t r = 0; r < d.kernel.h; ++r)
      if (r * d.dil.h % d.stride.h == first) phase.rows = band_rows_ + r * d.dil.h / d.stride.h;
    elems += tiles_ * bands_ * phase.rows * pairs_ * kPairElems;
    phases_.push_back(phase);
  }
  for (std::int64_t r = 0; r < d.kernel.h; ++r)
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {
      const Phase& phase = phases_[static_cast<std::size_t>(r * d.dil.h % d.stride.h)];
      const std::int64_t band = phase.rows * pairs_ * kPairElems;
      sides_.push_back({phase.start + tile * bands_ * band + r * d.dil.h / d.stride.h * pairs_ * kPairElems, band});
    }
  // The last step of the last band may read beyond its rows, and the bias sums dy times one.
  elems += steps_ * kTileElems;
  if (d.bias) sides_.push_back({elems, 0});
  elems += d.bias ? steps_ * kTileElems : 0;

  left_at_ = scratch.take(tile_bytes(d.K, bands_ * steps_ * kTileDepth));
  right_at_ = scratch.take(static_cast<std::size_t>(elems) * sizeof(BHalf));
  edges_at_ = scratch.take(static_cast<std::size_t>(threads * kTileDepth * d.kernel.w * d.C) * sizeof(BHalf));
  sums_at_ = scratch.take(static_cast<std::size_t>(d.kernel.d * d.K * columns_) * sizeof(float));
}

void TileConvWeights::run(const BHalf* x, const BHalf* dy, const Gradients& to, std::byte* scratch) const {
  auto* left = reinterpret_cast<BHalf*>(scratch + left_at_);
  auto* right = reinterpret_cast<BHalf*>(scratch + right_at_);
  auto* edges = reinterpret_cast<BHalf*>(scratch + edges_at_);
  auto* sums = reinterpret_cast<float*>(scratch + sums_at_);
  const Phase& last = phases_.back();
  const std::int64_t used = last.start + tiles_ * bands_ * last.rows * pairs_ * kPairElems;
  std::fill_n(right + used, steps_ * kTileElems, BHalf{0});
  if (d_.bias) std::fill_n(right + sides_.back().start, steps_ * kTileElems, kOne);

  const std::int64_t bands = d_.N * O_ * bands_of_slice_, column_blocks = columns_ / kTileBlock;
  const std::int64_t blocks = column_blocks * tile_blocks(d_.K);
  const bool team = threads_ > 1 && d_.N * O_ * P_ * Q_ * d_.weights() >= kParallelProducts;
#pragma omp parallel num_threads(threads_) if (team)
  {
    TileUnit unit(real_);
    for (std::int64_t first = 0; first < bands; first += bands_) {
      const std::int64_t now = std::min(bands_, bands - first);
#pragma omp for nowait
      for (std::int64_t i = 0; i < now * steps_; ++i)
        pack_left(dy, first + i / steps_, i % steps_, left + i * 2 * kTileElems);
      for (std::int64_t t = 0; t < d_.kernel.d; ++t) {
        for (const Phase& phase : phases_) {
#pragma omp for nowait
          for (std::int64_t i = 0; i < now * phase.rows; ++i)
            pack_row(x, slice_of_x(first + i / phase.rows, t), first + i / phase.rows, phase, i % phase.rows,
                     right + phase.start + i * pairs_ * kPairElems,
                     edges + omp_get_thread_num() * kTileDepth * d_.kernel.w * d_.C);
        }
#pragma omp barrier
#pragma omp for
        for (std::int64_t block = 0; block < blocks; ++block) {
          const std::int64_t row = block / column_blocks, column = block % column_blocks;
          const Side& one = sides_[static_cast<std::size_t>(2 * column)];
          const Side& two = sides_[std::min(static_cast<std::size_t>(2 * column + 1), sides_.size() - 1)];
          unit.multiply({.a = left + row * bands_ * steps_ * 2 * kTileElems,
                         .b = right + one.start,
                         .steps = steps_,
                         .b_second = right + two.start,
                         .b_step = kTileElems,
                         .runs = now,
                         .b_run = one.band,
                         .b_second_run = two.band,
                         .rows = static_cast<int>(std::min(kTileBlock, d_.K - row * kTileBlock)),
                         .columns = static_cast<int>(kTileBlock),
                         .c = sums + (t * d_.K + row * kTileBlock) * columns_ + column * kTileBlock,
                         .c_row = columns_,
                         .add = first > 0});
        }
      }
    }
#pragma omp for
    for (std::int64_t k = 0; k < d_.K; ++k) store(sums, k, to);
  }
}

std::int64_t TileConvWeights::slice_of_x(std::int64_t band, std::int64_t kernel_slice) const {
  const std::int64_t slice = band / bands_of_slice_;
  const std::int64_t d = slice % O_ * d_.stride.d - d_.pad.d + kernel_slice * d_.dil.d;
  return d < 0 || d >= d_.in.d ? -1 : slice / O_ * d_.in.d + d;
}

// Packs a row of x, which `to` points to in the first tile of columns. `edges` takes the lines that meet padding.
void TileConvWeights::pack_row(const BHalf* x, std::int64_t slice, std::int64_t band, const Phase& phase,
                               std::int64_t row, BHalf* to, BHalf* edges) const {
  const std::int64_t p = band % bands_of_slice_ * band_rows_ + row;
  const std::int64_t h = p * d_.stride.h + phase.first - d_.pad.h, elems = d_.kernel.w * d_.C;
  const std::int64_t tile = bands_ * phase.rows * pairs_ * kPairElems;
  const bool outside = slice < 0 || h < 0 || h >= d_.in.h;
  const BHalf* from = x + (slice * d_.in.h + h) * d_.in.w * d_.C;
  for (std::int64_t begin = 0; begin < 2 * pairs_; begin += kTileDepth, to += kTileElems) {
    std::array<const BHalf*, kTileDepth> lines{};
    const std::int64_t count = std::min(kTileDepth, 2 * pairs_ - begin);
    for (std::int64_t i = 0; i < count && !outside && begin + i < Q_; ++i) {
      const std::int64_t w = (begin + i) * d_.stride.w - d_.pad.w;
      const BHalf*& line = lines[static_cast<std::size_t>(i)];
      line = from + w * d_.C;
      if (w >= 0 && w + d_.kernel.w <= d_.in.w) continue;
      BHalf* edge = edges + i * elems;
      std::fill_n(edge, elems, BHalf{0});
      const std::int64_t left = std::max<std::int64_t>(w, 0), right = std::min(w + d_.kernel.w, d_.in.w);
      if (left < right) std::copy(from + left * d_.C, from + right * d_.C, edge + (left - w) * d_.C);
      line = edge;
    }
    for (std::int64_t i = 0; i < tiles_; ++i)
      pack_right_tile({lines.data(), i * kTileSide, std::min(kTileSide, elems - i * kTileSide)}, count, to + i * tile,
                      real_);
  }
}

// Packs a step of dy, whose first 32 rows `to` points to.
void TileConvWeights::pack_left(const BHalf* dy, std::int64_t band, std::int64_t step, BHalf* to) const {
  const std::int64_t lines = 2 * pairs_, first = band % bands_of_slice_ * band_rows_;
  const std::int64_t rows = std::min(band_rows_, P_ - first);
  const BHalf* from = dy + (band / bands_of_slice_ * P_ + first) * Q_ * d_.K;
  std::array<const BHalf*, kTileDepth> pixels{};
  std::int64_t p = step * kTileDepth / lines, q = step * kTileDepth % lines;
  for (const BHalf*& pixel : pixels) {
    if (p < rows && q < Q_) pixel = from + (p * Q_ + q) * d_.K;
    if (++q == lines) ++p, q = 0;
  }
  for (std::int64_t k = 0; k < d_.K; k += kTileSide)
    pack_left_tile({pixels.data(), k, std::min(kTileSide, d_.K - k)},
                   to + (k / kTileBlock * bands_ * steps_ * 2 + k / kTileSide % 2) * kTileElems, real_);
}

void TileConvWeights::store(const float* sums, std::int64_t k, const Gradients& to) const {
  const std::int64_t cells = d_.kernel.d * d_.kernel.h * d_.kernel.w;
  float* w = to.w + k * d_.C * cells;
  for (std::int64_t t = 0; t < d_.kernel.d; ++t)
    for (std::int64_t r = 0; r < d_.kernel.h; ++r)
      for (std::int64_t s = 0; s < d_.kernel.w; ++s) {
        const float* from = sums + (t * d_.K + k) * columns_ + r * tiles_ * kTileSide + s * d_.C;
        float* at = w + (t * d_.kernel.h + r) * d_.kernel.w + s;
        for (std::int64_t c = 0; c < d_.C; ++c) at[c * cells] = from[c] + (to.add_w ? at[c * cells] : 0.0f);
      }
  if (to.b) to.b[k] = sums[k * columns_ + d_.kernel.h * tiles_ * kTileSide] + (to.add_b ? to.b[k] : 0.0f);
}

}  // namespace echelon::inline device::onednn
