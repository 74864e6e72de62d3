// SPDX-License-Identifier: Apache-2.0
// Pooling. A max pool saves the position of each maximum, as i32 inside its plane of x; -1 if a ReLU cuts it off.
#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Calls cell(h * W + w) for the cells of window (p, q) inside the image, row by row.
template <class Cell>
void for_each_cell(const PoolDims& d, std::int64_t p, std::int64_t q, Cell&& cell) {
  const std::int64_t h0 = p * d.stride_h - d.pad_h, w0 = q * d.stride_w - d.pad_w;
  for (std::int64_t h = std::max<std::int64_t>(h0, 0); h < std::min(h0 + d.R, d.H); ++h)
    for (std::int64_t w = std::max<std::int64_t>(w0, 0); w < std::min(w0 + d.S, d.W); ++w) cell(h * d.W + w);
}

// Calls window(p, q, x_at, y_at) for each output; x_at is the start of its plane of x.
template <class Window>
void for_each_window(const PoolDims& d, Window&& window) {
  std::int64_t y_at = 0;
  for (std::int64_t nc = 0; nc < d.N * d.C; ++nc)
    for (std::int64_t p = 0; p < d.P(); ++p)
      for (std::int64_t q = 0; q < d.Q(); ++q) window(p, q, nc * d.H * d.W, y_at++);
}

double divisor(const PoolDims& d, std::int64_t p, std::int64_t q) {
  if (d.mode == PoolMode::average_all) return static_cast<double>(d.R * d.S);
  double cells = 0;
  for_each_cell(d, p, q, [&](std::int64_t) { ++cells; });
  return cells;
}

template <class T>
void forward(const PoolDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const Output<T> y(args, 1);
  auto* positions = static_cast<std::int32_t*>(args.saved);
  for_each_window(d, [&](std::int64_t p, std::int64_t q, std::int64_t x_at, std::int64_t y_at) {
    if (d.mode != PoolMode::max) {
      double sum = 0;
      for_each_cell(d, p, q, [&](std::int64_t at) { sum += static_cast<double>(x[x_at + at]); });
      y.put(y_at, sum / divisor(d, p, q));
      return;
    }
    std::int64_t most = -1;
    for_each_cell(d, p, q, [&](std::int64_t at) {
      const T value = x[x_at + at];
      if (most < 0 || value > x[x_at + most] || std::isnan(value)) most = at;
    });
    const T value = x[x_at + most];
    y.put(y_at, d.relu && value < T(0) ? 0.0 : static_cast<double>(value));
    if (positions) positions[y_at] = d.relu && !(value > T(0)) ? -1 : static_cast<std::int32_t>(most);
  });
}

template <class T>
void backward(const PoolDims& d, const OpArgs& args, std::vector<double>& dx_sums) {
  const T* dy = in<T>(args, 0);
  const Output<T> dx(args, 1);
  const auto* positions = static_cast<const std::int32_t*>(args.saved);
  std::fill(dx_sums.begin(), dx_sums.end(), 0.0);
  for_each_window(d, [&](std::int64_t p, std::int64_t q, std::int64_t x_at, std::int64_t y_at) {
    const auto gradient = static_cast<double>(dy[y_at]);
    double* plane = dx_sums.data() + x_at;
    if (d.mode == PoolMode::max && positions[y_at] >= 0) plane[positions[y_at]] += gradient;
    if (d.mode != PoolMode::max)
      for_each_cell(d, p, q, [&, share = gradient / divisor(d, p, q)](std::int64_t at) { plane[at] += share; });
  });
  for (std::size_t i = 0; i < dx_sums.size(); ++i) dx.put(static_cast<std::int64_t>(i), dx_sums[i]);
}

}  // namespace

std::unique_ptr<Op> make_pool(const OpSpec& spec) {
  const auto d = std::get<PoolDims>(spec.dims);
  const auto outputs = static_cast<std::size_t>(d.N * d.C * d.P() * d.Q());
  const std::size_t saved = d.mode == PoolMode::max ? outputs * sizeof(std::int32_t) : 0;
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::pool_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); }, saved);
    if (spec.kind != OpKind::pool_backward) not_of_family(spec);
    std::vector<double> sums(static_cast<std::size_t>(d.N * d.C * d.H * d.W));
    return loop_op([d, sums](const OpArgs& a) mutable { backward<T>(d, a, sums); }, saved);
  });
}

}  // namespace echelon::inline device::reference
