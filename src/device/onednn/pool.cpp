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

// The one slab of an image.
struct OneSpan {
  static constexpr std::int64_t first = 0, begin = 0, end = 1;
};

// Windows of 2 x 2 cells that do not overlap, windows of images and series, windows of volumes.
enum class Form : std::uint8_t { pairs, image, volume };

// The cells of a window: in depth, rows and columns.
template <class Slabs, class Cells>
struct Window {
  Slabs slabs;
  Cells rows, columns;
  // The pixel of a cell in its plane, or in its volume.
  std::int64_t pixel(const PoolDims& d, std::int64_t t, std::int64_t r, std::int64_t s) const {
    return ((slabs.first + t) * d.in.h + rows.first + r) * d.in.w + columns.first + s;
  }
  // Calls body(t, r, s) for the cells inside the image, row by row.
  template <class Body>
  void for_each_cell(const Body& body) const {
    for (std::int64_t t = slabs.begin; t < slabs.end; ++t)
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s) body(t, r, s);
  }
};

// Calls body(output pixel, window) for every window of a plane.
template <Form kForm, class Body>
void for_each_window(const PoolDims& d, const Body& body) {
  const SpatialExtents y = d.out();
  const auto in_slab = [&](std::int64_t o, const auto& slabs) {
    using Slabs = std::remove_cvref_t<decltype(slabs)>;
    for (std::int64_t p = 0; p < y.h; ++p) {
      const std::int64_t row = (o * y.h + p) * y.w;
      if constexpr (kForm == Form::pairs) {
        for (std::int64_t q = 0; q < y.w; ++q)
          body(row + q, Window<Slabs, PairSpan>{slabs, PairSpan{2 * p}, PairSpan{2 * q}});
      } else {
        const Span rows(p, d.kernel.h, d.stride.h, d.pad.h, d.in.h);
        for (std::int64_t q = 0; q < y.w; ++q)
          body(row + q, Window<Slabs, Span>{slabs, rows, Span(q, d.kernel.w, d.stride.w, d.pad.w, d.in.w)});
      }
    }
  };
  if constexpr (kForm == Form::volume)
    for (std::int64_t o = 0; o < y.d; ++o) in_slab(o, Span(o, d.kernel.d, d.stride.d, d.pad.d, d.in.d));
  else
    in_slab(0, OneSpan{});
}

// The number of cell (t, r, s) of a window, row by row.
template <Form kForm>
std::int32_t number_of(const PoolDims& d, std::int64_t t, std::int64_t r, std::int64_t s) {
  return static_cast<std::int32_t>(kForm == Form::pairs ? r * 2 + s : (t * d.kernel.h + r) * d.kernel.w + s);
}

// The weight of each cell of an average window: one over the number of cells that count.
template <class AnyWindow>
float share(const PoolDims& d, const AnyWindow& window) {
  const auto length = [](const auto& span) { return span.end - span.begin; };
  const std::int64_t cells =
      d.mode == PoolMode::average_all ? d.cells() : length(window.slabs) * length(window.rows) * length(window.columns);
  return 1.0f / static_cast<float>(cells);
}

template <int kLanes, Form kForm, class T, class Index>
void max_forward(const PoolDims& d, std::int64_t pixel, const T* x, T* y, Index* cell) {
  using L = Lanes<kLanes>;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  for_each_window<kForm>(d, [&](std::int64_t out, const auto& window) {
    for (int v = 0; v < kLanes; v += L::kWidth) {
      typename L::Floats best = typename L::Floats{} + kLowest;
      typename L::Ints won = typename L::Ints{} - 1;  // none yet: any first value wins, also -inf
      window.for_each_cell([&](std::int64_t t, std::int64_t r, std::int64_t s) {
        const auto value = L::load(x + window.pixel(d, t, r, s) * pixel + v);
        const typename L::Ints wins = (value > best) | (value != value) | (won < 0);  // NaN stays NaN
        best = wins ? value : best;
        won = wins ? typename L::Ints{} + number_of<kForm>(d, t, r, s) : won;
      });
      if (d.relu) {
        won = best > 0.0f ? won : typename L::Ints{} + static_cast<std::int32_t>(d.cells());
        best = best < 0.0f ? typename L::Floats{} : best;
      }
      L::store(y + out * pixel + v, best);
      if (cell) L::store_as(cell + out * pixel + v, won);
    }
  });
}

template <int kLanes, Form kForm, class T>
void average_forward(const PoolDims& d, std::int64_t pixel, const T* x, T* y) {
  using L = Lanes<kLanes>;
  for_each_window<kForm>(d, [&](std::int64_t out, const auto& window) {
    const float factor = share(d, window);
    for (int v = 0; v < kLanes; v += L::kWidth) {
      typename L::Floats sum{};
      window.for_each_cell([&](std::int64_t t, std::int64_t r, std::int64_t s) {
        sum += L::load(x + window.pixel(d, t, r, s) * pixel + v);
      });
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

template <int kLanes, Form kForm, bool kAdd, class T, class Index>
void max_backward(const PoolDims& d, std::int64_t pixel, const T* dy, const Index* cell, T* dx) {
  using L = Lanes<kLanes>;
  for_each_window<kForm>(d, [&](std::int64_t out, const auto& window) {
    for (int v = 0; v < kLanes; v += L::kWidth) {
      const auto gradient = L::load(dy + out * pixel + v);
      const auto won = L::load_as(cell + out * pixel + v);
      window.for_each_cell([&](std::int64_t t, std::int64_t r, std::int64_t s) {
        put<kLanes, kAdd>(dx + window.pixel(d, t, r, s) * pixel + v,
                          won == number_of<kForm>(d, t, r, s) ? gradient : typename L::Floats{});
      });
    }
  });
}

template <int kLanes, Form kForm, bool kAdd, class T>
void average_backward(const PoolDims& d, std::int64_t pixel, const T* dy, T* dx) {
  using L = Lanes<kLanes>;
  for_each_window<kForm>(d, [&](std::int64_t out, const auto& window) {
    const float factor = share(d, window);
    for (int v = 0; v < kLanes; v += L::kWidth) {
      const auto gradient = L::load(dy + out * pixel + v) * factor;
      window.for_each_cell([&](std::int64_t t, std::int64_t r, std::int64_t s) {
        put<kLanes, kAdd>(dx + window.pixel(d, t, r, s) * pixel + v, gradient);
      });
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
        saved_elems_(d_.mode == PoolMode::max ? static_cast<std::size_t>(stored_elems(
                                                    with_axes(d_.N, d_.C, d_.out(), d_.in.rank), spec.layouts[0]))
                                              : 0),
        tiles_(tile(d_)),
        form_(d_.in.rank > 2                                   ? Form::volume
              : tiles_ && d_.kernel.h == 2 && d_.kernel.w == 2 ? Form::pairs
                                                               : Form::image),
        threads_(context.threads) {}

  std::size_t saved_bytes() const override { return saved_elems_ * sizeof(Index); }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 2U) != 0;
    const std::int64_t elems = d_.N * d_.C * d_.in.cells();
    for_each_plane(threads_, d_.N, planes_, elems, [&]<int kLanes>(std::int64_t n, std::int64_t c) {
      const std::int64_t big = planes_.offset(n, c, d_.in.cells()), small = planes_.offset(n, c, d_.out().cells());
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
    if (form_ == Form::pairs) return forward<kLanes, Form::pairs>(x, y, cell);
    form_ == Form::image ? forward<kLanes, Form::image>(x, y, cell) : forward<kLanes, Form::volume>(x, y, cell);
  }
  template <int kLanes, Form kForm>
  void forward(const T* x, T* y, Index* cell) const {
    if (d_.mode == PoolMode::max)
      max_forward<kLanes, kForm>(d_, planes_.pixel(), x, y, cell);
    else
      average_forward<kLanes, kForm>(d_, planes_.pixel(), x, y);
  }

  template <int kLanes>
  void backward(const T* dy, const Index* cell, T* dx, bool add) const {
    if (!tiles_ && !add) clear<kLanes>(d_.in.cells(), planes_.pixel(), dx);
    const bool adds = add || !tiles_;
    if (form_ == Form::pairs)
      adds ? backward<kLanes, Form::pairs, true>(dy, cell, dx) : backward<kLanes, Form::pairs, false>(dy, cell, dx);
    else if (form_ == Form::image)
      adds ? backward<kLanes, Form::image, true>(dy, cell, dx) : backward<kLanes, Form::image, false>(dy, cell, dx);
    else
      adds ? backward<kLanes, Form::volume, true>(dy, cell, dx) : backward<kLanes, Form::volume, false>(dy, cell, dx);
  }
  template <int kLanes, Form kForm, bool kAdd>
  void backward(const T* dy, const Index* cell, T* dx) const {
    if (d_.mode == PoolMode::max)
      max_backward<kLanes, kForm, kAdd>(d_, planes_.pixel(), dy, cell, dx);
    else
      average_backward<kLanes, kForm, kAdd>(d_, planes_.pixel(), dy, dx);
  }

  static bool tile(const PoolDims& d) {
    const SpatialExtents y = d.out();
    bool tiles = true;
    for (int axis = 0; axis < kMostAxes; ++axis)
      tiles = tiles && d.stride[axis] == d.kernel[axis] && d.pad[axis] == 0 && y[axis] * d.kernel[axis] == d.in[axis];
    return tiles;
  }

  PoolDims d_;
  bool backward_;
  Planes planes_;
  std::size_t saved_elems_;
  bool tiles_;  // every cell of the image belongs to exactly one window
  Form form_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_pool(Context& context, const OpSpec& spec) {
  const auto& d = std::get<PoolDims>(spec.dims);
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "the input and the output of a pool must have one layout");
  const std::int64_t outcomes = d.mode == PoolMode::max ? d.cells() + (d.relu ? 1 : 0) : 0;  // an average saves nothing
  if (outcomes > 65536) return std::make_unique<Pool<float, std::int32_t>>(context, spec);
  if (outcomes > 256) return std::make_unique<Pool<float, std::uint16_t>>(context, spec);
  if (is_half(spec.dtype)) return std::make_unique<Pool<BHalf, std::uint8_t>>(context, spec);
  return std::make_unique<Pool<float, std::uint8_t>>(context, spec);
}

bool pools_halves(const OpSpec& spec) {
  const auto& d = std::get<PoolDims>(spec.dims);
  const SpatialExtents y = d.out();
  bool apart = true;
  for (int axis = 0; axis < kMostAxes; ++axis) apart = apart && (y[axis] == 1 || d.stride[axis] >= d.kernel[axis]);
  if (d.mode != PoolMode::max) return spec.kind == OpKind::pool_forward || apart;
  return d.cells() + (d.relu ? 1 : 0) <= 256;
}

}  // namespace echelon::inline device::onednn
