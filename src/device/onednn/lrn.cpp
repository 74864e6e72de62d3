// SPDX-License-Identifier: Apache-2.0
// Local response normalisation in every layout: a tile of pixels is copied channel by channel to scratch, processed
// there with vectors of pixels, and written back. The library's code is plain C++ if channels do not fill blocks.
#include <omp.h>

#include <cmath>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kTile = 16;  // pixels

// s^-beta; the usual 3/4 is computed by square roots.
float power(float s, float beta) {
  if (beta != 0.75f) return std::pow(s, -beta);
  const float root = 1.0f / std::sqrt(s);
  return root * std::sqrt(root);
}

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class Lrn final : public Op {
 public:
  Lrn(const Context& context, const OpSpec& spec)
      : d_(std::get<LrnDims>(spec.dims)),
        backward_(spec.kind == OpKind::lrn_backward),
        layout_(spec.layouts[0]),
        planes_(d_.C, layout_),
        pixels_(d_.H * d_.W),
        threads_(context.threads) {}

  std::string implementation() const override { return "own loop"; }
  // Each thread keeps x and, in the backward pass, dy, s^-beta and dy x s^(-beta-1): each (C, kTile).
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(threads_ * buffer_elems()) * sizeof(float);
  }

  void run(const OpArgs& args) override {
    const std::int64_t tiles = (pixels_ + kTile - 1) / kTile;
    auto* scratch = static_cast<float*>(args.scratch);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.C * pixels_ >= kParallelElems)
    for (std::int64_t i = 0; i < d_.N * tiles; ++i) {
      float* buffer = scratch + omp_get_thread_num() * buffer_elems();
      const Tile tile{i / tiles, i % tiles * kTile, std::min(kTile, pixels_ - i % tiles * kTile)};
      backward_ ? backward(args, tile, buffer) : forward(args, tile, buffer);
    }
    clear_padding(static_cast<T*>(args.tensors[backward_ ? 2 : 1]), {d_.N, d_.C, d_.H, d_.W}, layout_);
  }

 private:
  struct Tile {
    std::int64_t n, first, pixels;
  };

  std::int64_t buffer_elems() const { return (backward_ ? 4 : 1) * d_.C * kTile; }

  const float* load(const void* tensor, const Tile& tile, float* to) const {
    const std::int64_t pixel = planes_.pixel();
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const T* from = static_cast<const T*>(tensor) + planes_.element(tile.n, c, pixels_) + tile.first * pixel;
      for (std::int64_t t = 0; t < tile.pixels; ++t) to[c * kTile + t] = widened(from[t * pixel]);
      for (std::int64_t t = tile.pixels; t < kTile; ++t) to[c * kTile + t] = 0;
    }
    return to;
  }

  template <bool kAdd>
  void store(void* tensor, const Tile& tile, std::int64_t c, const float* values) const {
    const std::int64_t pixel = planes_.pixel();
    T* to = static_cast<T*>(tensor) + planes_.element(tile.n, c, pixels_) + tile.first * pixel;
    T cells[kTile];
    for (std::int64_t t = 0; t < tile.pixels; ++t) cells[t] = kAdd ? to[t * pixel] : T{};
#pragma omp simd
    for (std::int64_t t = 0; t < kTile; ++t) cells[t] = rounded_to<T>(widened(cells[t]) + values[t]);
    for (std::int64_t t = 0; t < tile.pixels; ++t) to[t * pixel] = cells[t];
  }

  // k + alpha/size * the sum of squares around channel c, for each pixel.
  void scale(const float* x, std::int64_t c, float* s) const {
    float sum[kTile] = {};
    const std::int64_t end = std::min(d_.C, c + (d_.size - 1) / 2 + 1);
    for (std::int64_t j = std::max<std::int64_t>(0, c - d_.size / 2); j < end; ++j)
#pragma omp simd
      for (std::int64_t t = 0; t < kTile; ++t) sum[t] += x[j * kTile + t] * x[j * kTile + t];
    const auto share = static_cast<float>(d_.alpha / static_cast<double>(d_.size)), k = static_cast<float>(d_.k);
#pragma omp simd
    for (std::int64_t t = 0; t < kTile; ++t) s[t] = k + share * sum[t];
  }

  void forward(const OpArgs& args, const Tile& tile, float* buffer) const {
    const float* x = load(args.tensors[0], tile, buffer);
    const auto beta = static_cast<float>(d_.beta);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      float y[kTile];
      scale(x, c, y);
#pragma omp simd
      for (std::int64_t t = 0; t < kTile; ++t) y[t] = x[c * kTile + t] * power(y[t], beta);
      store<false>(args.tensors[1], tile, c, y);
    }
  }

  void backward(const OpArgs& args, const Tile& tile, float* buffer) const {
    const std::int64_t elems = d_.C * kTile;
    const float *x = load(args.tensors[0], tile, buffer), *dy = load(args.tensors[1], tile, buffer + elems);
    float *own = buffer + 2 * elems, *pull = buffer + 3 * elems;
    const auto beta = static_cast<float>(d_.beta);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      float s[kTile];
      scale(x, c, s);
#pragma omp simd
      for (std::int64_t t = 0; t < kTile; ++t) {
        own[c * kTile + t] = dy[c * kTile + t] * power(s[t], beta);
        pull[c * kTile + t] = own[c * kTile + t] * x[c * kTile + t] / s[t];
      }
    }
    const auto factor = static_cast<float>(2 * d_.alpha * d_.beta / static_cast<double>(d_.size));
    const bool add = (args.accumulate & 4U) != 0;
    for (std::int64_t c = 0; c < d_.C; ++c) {
      float sum[kTile] = {};
      const std::int64_t end = std::min(d_.C, c + d_.size / 2 + 1);
      for (std::int64_t j = std::max<std::int64_t>(0, c - (d_.size - 1) / 2); j < end; ++j)
#pragma omp simd
        for (std::int64_t t = 0; t < kTile; ++t) sum[t] += pull[j * kTile + t];
#pragma omp simd
      for (std::int64_t t = 0; t < kTile; ++t) sum[t] = own[c * kTile + t] - factor * x[c * kTile + t] * sum[t];
      add ? store<true>(args.tensors[2], tile, c, sum) : store<false>(args.tensors[2], tile, c, sum);
    }
  }

  LrnDims d_;
  bool backward_;
  Layout layout_;
  Planes planes_;
  std::int64_t pixels_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_lrn(Context& context, const OpSpec& spec) {
  for (std::size_t a = 1; a < signature(spec).size(); ++a)
    ECHELON_CHECK(spec.layouts[a] == spec.layouts[0], "the input and the output of an lrn must have one layout");
  return make_stored<Lrn>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
