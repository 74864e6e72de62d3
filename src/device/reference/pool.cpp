// SPDX-License-Identifier: Apache-2.0
// Pooling. A max pool saves the position of each maximum, as i32 inside its channel of x; -1 if a ReLU cuts it off.
#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// The position of an output: (o, p, q).
using Position = AxisSizes;

// Calls cell((d * H + h) * W + w) for the cells of a window inside the image, row by row.
template <class Cell>
void for_each_cell(const PoolDims& d, const Position& window, Cell&& cell) {
  AxisSizes begin, end;
  for (int axis = 0; axis < kMostAxes; ++axis) {
    const std::int64_t first = window[axis] * d.stride[axis] - d.pad[axis];
    begin[axis] = std::max<std::int64_t>(first, 0);
    end[axis] = std::min(first + d.kernel[axis], d.in[axis]);
  }
  for (std::int64_t z = begin.d; z < end.d; ++z)
    for (std::int64_t h = begin.h; h < end.h; ++h)
      for (std::int64_t w = begin.w; w < end.w; ++w) cell((z * d.in.h + h) * d.in.w + w);
}

// Calls window(position, x_at, y_at) for each output; x_at is the start of its channel of x.
template <class Window>
void for_each_window(const PoolDims& d, Window&& window) {
  const SpatialExtents y = d.out();
  std::int64_t y_at = 0;
  for (std::int64_t nc = 0; nc < d.N * d.C; ++nc)
    for (std::int64_t o = 0; o < y.d; ++o)
      for (std::int64_t p = 0; p < y.h; ++p)
        for (std::int64_t q = 0; q < y.w; ++q) window(Position{o, p, q}, nc * d.in.cells(), y_at++);
}

double divisor(const PoolDims& d, const Position& window) {
  if (d.mode == PoolMode::average_all) return static_cast<double>(d.cells());
  double cells = 0;
  for_each_cell(d, window, [&](std::int64_t) { ++cells; });
  return cells;
}

template <class T>
void forward(const PoolDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const Output<T> y(args, 1);
  auto* positions = static_cast<std::int32_t*>(args.saved);
  for_each_window(d, [&](const Position& at_y, std::int64_t x_at, std::int64_t y_at) {
    if (d.mode != PoolMode::max) {
      double sum = 0;
      for_each_cell(d, at_y, [&](std::int64_t at) { sum += static_cast<double>(x[x_at + at]); });
      y.put(y_at, sum / divisor(d, at_y));
      return;
    }
    std::int64_t most = -1;
    for_each_cell(d, at_y, [&](std::int64_t at) {
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
  for_each_window(d, [&](const Position& at_y, std::int64_t x_at, std::int64_t y_at) {
    const auto gradient = static_cast<double>(dy[y_at]);
    double* plane = dx_sums.data() + x_at;
    if (d.mode == PoolMode::max && positions[y_at] >= 0) plane[positions[y_at]] += gradient;
    if (d.mode != PoolMode::max)
      for_each_cell(d, at_y, [&, share = gradient / divisor(d, at_y)](std::int64_t at) { plane[at] += share; });
  });
  for (std::size_t i = 0; i < dx_sums.size(); ++i) dx.put(static_cast<std::int64_t>(i), dx_sums[i]);
}

}  // namespace

std::unique_ptr<Op> make_pool(const OpSpec& spec) {
  const auto d = std::get<PoolDims>(spec.dims);
  const auto outputs = static_cast<std::size_t>(d.N * d.C * d.out().cells());
  const std::size_t saved = d.mode == PoolMode::max ? outputs * sizeof(std::int32_t) : 0;
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::pool_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); }, saved);
    if (spec.kind != OpKind::pool_backward) not_of_family(spec);
    std::vector<double> sums(static_cast<std::size_t>(d.N * d.C * d.in.cells()));
    return loop_op([d, sums](const OpArgs& a) mutable { backward<T>(d, a, sums); }, saved);
  });
}

}  // namespace echelon::inline device::reference
