// Pooling by own loops: the library's plain bodies are scalar, and ours need a byte of memory a window, not four.
//
// A max pool saves the cell of its window that won (row-major, the first of equals) as a byte; windows of 256 cells and
// more take two bytes.
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::onednn {
namespace {

// The cells [begin, end) of a window along one axis that lie inside the image, for output position p.
struct Span {
  std::int64_t first, begin, end;  // first: image coordinate of cell 0
  Span(std::int64_t p, std::int64_t size, std::int64_t stride, std::int64_t pad, std::int64_t extent)
      : first(p * stride - pad), begin(std::max<std::int64_t>(0, -first)), end(std::min(size, extent - first)) {}
};

// Calls body(output pixel, row span, column span) for every window of a plane.
template <class Body>
void for_each_window(const PoolDims& d, const Body& body) {
  const std::int64_t P = d.P(), Q = d.Q();
  for (std::int64_t p = 0; p < P; ++p) {
    const Span rows(p, d.R, d.stride_h, d.pad_h, d.H);
    for (std::int64_t q = 0; q < Q; ++q) body(p * Q + q, rows, Span(q, d.S, d.stride_w, d.pad_w, d.W));
  }
}

// Factor of an average window: one over its cells that count.
float share(const PoolDims& d, const Span& rows, const Span& columns) {
  const std::int64_t cells =
      d.mode == PoolMode::average_all ? d.R * d.S : (rows.end - rows.begin) * (columns.end - columns.begin);
  return 1.0f / static_cast<float>(cells);
}

template <int kLanes, class Index>
void max_forward(const PoolDims& d, std::int64_t pixel, const float* x, float* y, Index* cell) {
  for_each_window(d, [&](std::int64_t out, const Span& rows, const Span& columns) {
    float best[kLanes];
    std::int32_t won[kLanes];
    for (int l = 0; l < kLanes; ++l) best[l] = -std::numeric_limits<float>::infinity(), won[l] = -1;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t s = columns.begin; s < columns.end; ++s) {
        const float* from = x + ((rows.first + r) * d.W + columns.first + s) * pixel;
        const auto id = static_cast<std::int32_t>(r * d.S + s);
        for (int l = 0; l < kLanes; ++l) {
          const bool wins = from[l] > best[l] || won[l] < 0;
          best[l] = wins ? from[l] : best[l];
          won[l] = wins ? id : won[l];
        }
      }
    }
    for (int l = 0; l < kLanes; ++l) {
      y[out * pixel + l] = best[l];
      if (cell) cell[out * pixel + l] = static_cast<Index>(won[l]);
    }
  });
}

template <int kLanes>
void average_forward(const PoolDims& d, std::int64_t pixel, const float* x, float* y) {
  for_each_window(d, [&](std::int64_t out, const Span& rows, const Span& columns) {
    float sum[kLanes] = {};
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s)
        for (int l = 0; l < kLanes; ++l) sum[l] += x[((rows.first + r) * d.W + columns.first + s) * pixel + l];
    const float factor = share(d, rows, columns);
    for (int l = 0; l < kLanes; ++l) y[out * pixel + l] = sum[l] * factor;
  });
}

// Writes each cell of windows that tile the image exactly, once: no pass of zeros before.
template <bool kAdd>
void put(float& to, float value) {
  if constexpr (kAdd)
    to += value;
  else
    to = value;
}

template <int kLanes, bool kAdd, class Index>
void max_backward(const PoolDims& d, std::int64_t pixel, const float* dy, const Index* cell, float* dx) {
  for_each_window(d, [&](std::int64_t out, const Span& rows, const Span& columns) {
    float gradient[kLanes];
    std::int32_t won[kLanes];
    for (int l = 0; l < kLanes; ++l) gradient[l] = dy[out * pixel + l], won[l] = cell[out * pixel + l];
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t s = columns.begin; s < columns.end; ++s) {
        float* to = dx + ((rows.first + r) * d.W + columns.first + s) * pixel;
        const auto id = static_cast<std::int32_t>(r * d.S + s);
        for (int l = 0; l < kLanes; ++l) put<kAdd>(to[l], won[l] == id ? gradient[l] : 0.0f);
      }
    }
  });
}

template <int kLanes, bool kAdd>
void average_backward(const PoolDims& d, std::int64_t pixel, const float* dy, float* dx) {
  for_each_window(d, [&](std::int64_t out, const Span& rows, const Span& columns) {
    float gradient[kLanes];
    const float factor = share(d, rows, columns);
    for (int l = 0; l < kLanes; ++l) gradient[l] = dy[out * pixel + l] * factor;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s)
        for (int l = 0; l < kLanes; ++l)
          put<kAdd>(dx[((rows.first + r) * d.W + columns.first + s) * pixel + l], gradient[l]);
  });
}

template <int kLanes>
void clear(std::int64_t pixels, std::int64_t pixel, float* dx) {
  for (std::int64_t i = 0; i < pixels; ++i)
    for (int l = 0; l < kLanes; ++l) dx[i * pixel + l] = 0.0f;
}

template <class Index>
class Pool final : public Op {
 public:
  Pool(const Context& context, const OpSpec& spec)
      : d_(std::get<PoolDims>(spec.dims)),
        backward_(spec.kind == OpKind::pool_backward),
        planes_(d_.C, spec.layouts[0]),
        saved_elems_(d_.mode == PoolMode::max
                         ? static_cast<std::size_t>(stored_elems({d_.N, d_.C, d_.P(), d_.Q()}, spec.layouts[0]))
                         : 0),
        tiles_(d_.stride_h == d_.R && d_.stride_w == d_.S && d_.pad_h == 0 && d_.pad_w == 0 && d_.P() * d_.R == d_.H &&
               d_.Q() * d_.S == d_.W),
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
        forward<kLanes>(static_cast<const float*>(args.tensors[0]) + big, static_cast<float*>(args.tensors[1]) + small,
                        cell);
      else
        backward<kLanes>(static_cast<const float*>(args.tensors[0]) + small, cell,
                         static_cast<float*>(args.tensors[1]) + big, add);
    });
  }

 private:
  template <int kLanes>
  void forward(const float* x, float* y, Index* cell) const {
    if (d_.mode == PoolMode::max)
      max_forward<kLanes>(d_, planes_.pixel(), x, y, cell);
    else
      average_forward<kLanes>(d_, planes_.pixel(), x, y);
  }

  template <int kLanes>
  void backward(const float* dy, const Index* cell, float* dx, bool add) const {
    const bool overwrite = tiles_ && !add;
    if (!tiles_ && !add) clear<kLanes>(d_.H * d_.W, planes_.pixel(), dx);
    if (d_.mode == PoolMode::max)
      overwrite ? max_backward<kLanes, false>(d_, planes_.pixel(), dy, cell, dx)
                : max_backward<kLanes, true>(d_, planes_.pixel(), dy, cell, dx);
    else
      overwrite ? average_backward<kLanes, false>(d_, planes_.pixel(), dy, dx)
                : average_backward<kLanes, true>(d_, planes_.pixel(), dy, dx);
  }

  PoolDims d_;
  bool backward_;
  Planes planes_;
  std::size_t saved_elems_;
  bool tiles_;  // every cell of the image belongs to exactly one window
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_pool(Context& context, const OpSpec& spec) {
  const auto& d = std::get<PoolDims>(spec.dims);
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "a pool's input and output have one layout");
  ECHELON_CHECK_LE(d.R * d.S, 65536);
  if (d.R * d.S <= 256) return std::make_unique<Pool<std::uint8_t>>(context, spec);
  return std::make_unique<Pool<std::uint16_t>>(context, spec);
}

}  // namespace echelon::onednn
