// SPDX-License-Identifier: Apache-2.0
// Concatenation and slices of channels, in every layout: the library's concat of blocked tensors falls back to plain
// C++ if the number of channels is not a multiple of a block.
#include <algorithm>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// A range of `count` channels of one sample, from `first` on, in a tensor of C channels.
struct Channels {
  Planes planes;
  std::int64_t C, first;
};

// Whether the range is contiguous in memory without any other channel.
bool whole(const Channels& range, std::int64_t count) {
  const std::int64_t block = range.planes.block();
  return !range.planes.channels_last() && range.first % block == 0 && count % block == 0;
}

// The unit of work is a run of `n` elements that are contiguous in both tensors; T is float or BHalf.
template <class T>
void move(const T* from, T* to, std::int64_t n, bool add) {
  if (!add) std::copy_n(from, n, to);
  if (!add) return;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) to[i] = rounded_to<T>(widened(to[i]) + widened(from[i]));
}

template <class T>
void move_channels(std::int64_t n, std::int64_t pixels, const Channels& src, const T* x, const Channels& dst, T* y,
                   std::int64_t count, bool add) {
  if (whole(src, count) && whole(dst, count))
    return move(x + src.planes.offset(n, src.first, pixels), y + dst.planes.offset(n, dst.first, pixels),
                count * pixels, add);
  if (src.planes.channels_last()) {
    for (std::int64_t i = 0; i < pixels; ++i)
      move(x + src.planes.offset(n, src.first, pixels) + i * src.C,
           y + dst.planes.offset(n, dst.first, pixels) + i * dst.C, count, add);
    return;
  }
  for (std::int64_t c = 0; c < count; ++c) {
    const T* from = x + src.planes.element(n, src.first + c, pixels);
    T* to = y + dst.planes.element(n, dst.first + c, pixels);
    const std::int64_t pixel = src.planes.pixel();
    for (std::int64_t i = 0; i < pixels; ++i) {
      T& cell = to[i * pixel];
      cell = add ? rounded_to<T>(widened(cell) + widened(from[i * pixel])) : from[i * pixel];
    }
  }
}

template <class T>
class Concat final : public Op {
 public:
  Concat(const Context& context, const OpSpec& spec)
      : d_(std::get<ConcatDims>(spec.dims)), layout_(spec.layouts[0]), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const int inputs = d_.inputs();
    const std::int64_t C = d_.C(), pixels = d_.H * d_.W;
    auto* y = static_cast<T*>(args.tensors[inputs]);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * C * pixels >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n) {
      std::int64_t before = 0;
      for (int i = 0; i < inputs; ++i) {
        const std::int64_t count = d_.channels[static_cast<std::size_t>(i)];
        move_channels(n, pixels, {Planes(count, layout_), count, 0}, static_cast<const T*>(args.tensors[i]),
                      {Planes(C, layout_), C, before}, y, count, false);
        before += count;
      }
    }
    clear_padding(y, {d_.N, C, d_.H, d_.W}, layout_);
  }

 private:
  ConcatDims d_;
  Layout layout_;
  int threads_;
};

template <class T>
class Slice final : public Op {
 public:
  Slice(const Context& context, const OpSpec& spec)
      : d_(std::get<SliceDims>(spec.dims)), layout_(spec.layouts[0]), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    if (d_.indices) return copy_indices(args);
    const bool add = (args.accumulate & 2U) != 0;
    const std::int64_t pixels = d_.H * d_.W;
    const auto* x = static_cast<const T*>(args.tensors[0]);
    auto* y = static_cast<T*>(args.tensors[1]);
    const Channels src{Planes(d_.C, layout_), d_.C, d_.first}, dst{Planes(d_.count, layout_), d_.count, 0};
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.count * pixels >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n) move_channels(n, pixels, src, x, dst, y, d_.count, add);
    clear_padding(y, {d_.N, d_.count, d_.H, d_.W}, layout_);
  }

 private:
  void copy_indices(const OpArgs& args) const {
    const std::int64_t plane = d_.H * d_.W;
    const auto* x = static_cast<const std::int32_t*>(args.tensors[0]);
    auto* y = static_cast<std::int32_t*>(args.tensors[1]);
    for (std::int64_t n = 0; n < d_.N; ++n)
      std::copy_n(x + (n * d_.C + d_.first) * plane, d_.count * plane, y + n * d_.count * plane);
  }

  SliceDims d_;
  Layout layout_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_concat(Context& context, const OpSpec& spec) {
  const auto args = static_cast<std::size_t>(std::get<ConcatDims>(spec.dims).inputs()) + 1;
  for (std::size_t a = 0; a < args; ++a)
    ECHELON_CHECK(spec.layouts[a] == spec.layouts[0], "the inputs and the output of a concat must have one layout");
  return make_stored<Concat>(spec.dtype, context, spec);
}

std::unique_ptr<Op> make_slice(Context& context, const OpSpec& spec) {
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "the input and the output of a slice must have one layout");
  return make_stored<Slice>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
