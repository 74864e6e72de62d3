// SPDX-License-Identifier: Apache-2.0
// Pooling by our own loops: the library's plain implementations are scalar, and these need one byte of memory per
// window instead of four.
//
// A max pool saves as a byte the cell of each window that won (row-major, the first among equals), or the number of
// cells if a ReLU cuts the maximum off; windows of 256 cells and more take two bytes, of 65,536 and more four.
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "device/onednn/lanes.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// The cells [begin, end) of a window along one axis that are inside the image, for output position p.
struct Span {
  std::int64_t first, begin, end;  // first: image coordinate of cell 0
  Span(std::int64_t p, std::int64_t size, std::int64_t stride, std::int64_t pad, std::int64_t extent)
      : first(p * stride - pad), begin(std::max<std::int64_t>(0, -first)), end(std::min(size, extent - first)) {}
};

// The same for windows of 2 cells that do not overlap and lie inside the image, with bounds known at compile time.
struct PairSpan {
  std::int64_t first;
  static constexpr std::int64_t begin = 0, end = 2;
};

// Calls body(output pixel, row span, column span) for every window of a plane.
template <bool kPairs, class Body>
void for_each_window(const PoolDims& d, const Body& body) {
  const std::int64_t P = d.P(), Q = d.Q();
  for (std::int64_t p = 0; p < P; ++p) {
    if constexpr (kPairs) {
      for (std::int64_t q = 0; q < Q; ++q) body(p * Q + q, PairSpan{2 * p}, PairSpan{2 * q});
    } else {
      const Span rows(p, d.R, d.stride_h, d.pad_h, d.H);
      for (std::int64_t q = 0; q < Q; ++q) body(p * Q + q, rows, Span(q, d.S, d.stride_w, d.pad_w, d.W));
    }
  }
}

// The weight of each cell of an average window: one over the number of cells that count.
template <class AnySpan>
float share(const PoolDims& d, const AnySpan& rows, const AnySpan& columns) {
  const std::int64_t cells =
      d.mode == PoolMode::average_all ? d.R * d.S : (rows.end - rows.begin) * (columns.end - columns.begin);
  return 1.0f / static_cast<float>(cells);
}

template <int kLanes, bool kPairs, class T, class Index>
void max_forward(const PoolDims& d, std::int64_t pixel, const T* x, T* y, Index* cell) {
  using L = Lanes<kLanes>;
  const std::int64_t width = kPairs ? 2 : d.S;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  for_each_window<kPairs>(d, [&](std::int64_t out, const auto& rows, const auto& columns) {
    for (int v = 0; v < kLanes; v += L::kWidth) {
      typename L::Floats best = typename L::Floats{} + kLowest;
      typename L::Ints won = typename L::Ints{} - 1;  // none yet: any first value wins, also -inf
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        for (std::int64_t s = columns.begin; s < columns.end; ++s) {
          const auto value = L::load(x + ((rows.first + r) * d.W + columns.first + s) * pixel + v);
          const typename L::Ints wins = (value > best) | (value != value) | (won < 0);  // NaN stays NaN
          best = wins ? value : best;
          won = wins ? typename L::Ints{} + static_cast<std::int32_t>(r * width + s) : won;
        }
      }
      if (d.relu) {
        won = best > 0.0f ? won : typename L::Ints{} + static_cast<std::int32_t>(d.R * d.S);
        best = best < 0.0f ? typename L::Floats{} : best;
      }
      L::store(y + out * pixel + v, best);
      if (cell) L::store_as(cell + out * pixel + v, won);
    }
  });
}

template <int kLanes, bool kPairs, class T>
void average_forward(const PoolDims& d, std::int64_t pixel, const T* x, T* y) {
  using L = Lanes<kLanes>;
  for_each_window<kPairs>(d, [&](std::int64_t out, const auto& rows, const auto& columns) {
    const float factor = share(d, rows, columns);
    for (int v = 0; v < kLanes; v += L::kWidth) {
      typename L::Floats sum{};
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s)
          sum += L::load(x + ((rows.first + r) * d.W + columns.first + s) * pixel + v);
      L::store(y + out * pixel + v, sum * factor);
    }
  });
}

// kAdd false: windows tile the image, so that each cell is written exactly once and need not be zeroed before.
template <int kLanes, bool kAdd, class T>
void put(T* to, typename Lanes<kLanes>::Floats value) {
  using L = Lanes<kLanes>;
  L::store(to, kAdd ? L::load(to) + value : value);
}

template <int kLanes, bool kPairs, bool kAdd, class T, class Index>
void max_backward(const PoolDims& d, std::int64_t pixel, const T* dy, const Index* cell, T* dx) {
  using L = Lanes<kLanes>;
  const std::int64_t width = kPairs ? 2 : d.S;
  for_each_window<kPairs>(d, [&](std::int64_t out, const auto& rows, const auto& columns) {
    for (int v = 0; v < kLanes; v += L::kWidth) {
      const auto gradient = L::load(dy + out * pixel + v);
      const auto won = L::load_as(cell + out * pixel + v);
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s)
          put<kLanes, kAdd>(dx + ((rows.first + r) * d.W + columns.first + s) * pixel + v,
                            won == static_cast<std::int32_t>(r * width + s) ? gradient : typename L::Floats{});
    }
  });
}

template <int kLanes, bool kPairs, bool kAdd, class T>
void average_backward(const PoolDims& d, std::int64_t pixel, const T* dy, T* dx) {
  using L = Lanes<kLanes>;
  for_each_window<kPairs>(d, [&](std::int64_t out, const auto& rows, const auto& columns) {
    const float factor = share(d, rows, columns);
    for (int v = 0; v < kLanes; v += L::kWidth) {
      const auto gradient = L::load(dy + out * pixel + v) * factor;
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s)
          put<kLanes, kAdd>(dx + ((rows.first + r) * d.W + columns.first + s) * pixel + v, gradient);
    }
  });
}

template <int kLanes, class T>
void clear(std::int64_t pixels, std::int64_t pixel, T* dx) {
  for (std::int64_t i = 0; i < pixels; ++i) std::fill(dx + i * pixel, dx + i * pixel + kLanes, T{});
}

// T is the type of activations and their gradients, float or BHalf.
template <class T, class Index>
class Pool final : public Op {
 public:
  Pool(const Context& context, const OpSpec& spec)
      : d_(std::get<PoolDims>(spec.dims)),
        backward_(spec.kind == OpKind::pool_backward),
        planes_(d_.C, spec.layouts[0], std::is_same_v<T, BHalf> ? 32 : 16),
        saved_elems_(d_.mode == PoolMode::max
                         ? static_cast<std::size_t>(stored_elems({d_.N, d_.C, d_.P(), d_.Q()}, spec.layouts[0]))
                         : 0),
        tiles_(d_.stride_h == d_.R && d_.stride_w == d_.S && d_.pad_h == 0 && d_.pad_w == 0 && d_.P() * d_.R == d_.H &&
               d_.Q() * d_.S == d_.W),
        pairs_(tiles_ && d_.R == 2 && d_.S == 2),
        threads_(context.threads) {}

  std::size_t saved_bytes() const override { return saved_elems_ * sizeof(Index); }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 2U) != 0;
    const std::int64_t elems = d_.N * d_.C * d_.H * d_.W;
    for_each_plane(threads_, d_.N, planes_, elems, [&]<int kLanes>(std::int64_t n, std::int64_t c) {
      const std::int64_t big = planes_.offset(n, c, d_.H * d_.W), small = planes_.offset(n, c, d_.P() * d_.Q());
      Index* cell = args.saved && d_.mode == PoolMode::max ? static_cast<Index*>(args.saved) + small : nullptr;
      if (!backward_)
        forward<kLanes>(static_cast<const T*>(args.tensors[0]) + big, static_cast<T*>(args.tensors[1]) + small, cell);
      else
        backward<kLanes>(static_cast<const T*>(args.tensors[0]) + small, cell, static_cast<T*>(args.tensors[1]) + big,
                         add);
    });
  }

 private:
  template <int kLanes>
  void forward(const T* x, T* y, Index* cell) const {
    pairs_ ? forward<kLanes, true>(x, y, cell) : forward<kLanes, false>(x, y, cell);
  }
  template <int kLanes, bool kPairs>
  void forward(const T* x, T* y, Index* cell) const {
    if (d_.mode == PoolMode::max)
      max_forward<kLanes, kPairs>(d_, planes_.pixel(), x, y, cell);
    else
      average_forward<kLanes, kPairs>(d_, planes_.pixel(), x, y);
  }

  template <int kLanes>
  void backward(const T* dy, const Index* cell, T* dx, bool add) const {
    if (!tiles_ && !add) clear<kLanes>(d_.H * d_.W, planes_.pixel(), dx);
    if (pairs_)
      add ? backward<kLanes, true, true>(dy, cell, dx) : backward<kLanes, true, false>(dy, cell, dx);
    else
      add || !tiles_ ? backward<kLanes, false, true>(dy, cell, dx) : backward<kLanes, false, false>(dy, cell, dx);
  }
  template <int kLanes, bool kPairs, bool kAdd>
  void backward(const T* dy, const Index* cell, T* dx) const {
    if (d_.mode == PoolMode::max)
      max_backward<kLanes, kPairs, kAdd>(d_, planes_.pixel(), dy, cell, dx);
    else
      average_backward<kLanes, kPairs, kAdd>(d_, planes_.pixel(), dy, dx);
  }

  PoolDims d_;
  bool backward_;
  Planes planes_;
  std::size_t saved_elems_;
  bool tiles_;  // every cell of the image belongs to exactly one window
  bool pairs_;  // windows of 2 x 2 cells
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_pool(Context& context, const OpSpec& spec) {
  const auto& d = std::get<PoolDims>(spec.dims);
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "the input and the output of a pool must have one layout");
  const std::int64_t outcomes = d.mode == PoolMode::max ? d.R * d.S + (d.relu ? 1 : 0) : 0;  // an average saves nothing
  if (outcomes > 65536) return std::make_unique<Pool<float, std::int32_t>>(context, spec);
  if (outcomes > 256) return std::make_unique<Pool<float, std::uint16_t>>(context, spec);
  if (is_half(spec.dtype)) return std::make_unique<Pool<BHalf, std::uint8_t>>(context, spec);
  return std::make_unique<Pool<float, std::uint8_t>>(context, spec);
}

bool pools_halves(const OpSpec& spec) {
  const auto& d = std::get<PoolDims>(spec.dims);
  const bool apart = (d.P() == 1 || d.stride_h >= d.R) && (d.Q() == 1 || d.stride_w >= d.S);
  if (d.mode != PoolMode::max) return spec.kind == OpKind::pool_forward || apart;
  return d.R * d.S + (d.relu ? 1 : 0) <= 256;
}

}  // namespace echelon::inline device::onednn
