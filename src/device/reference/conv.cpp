// SPDX-License-Identifier: Apache-2.0
// Convolution: every tap (t, r, s) adds a shifted, scaled volume to a volume of sums in double; an image is one of
// depth 1.
#include <algorithm>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Calls row(output, input, count) for the elements of each output row that tap `tap` of the kernel reaches, which are
// numbered row by row; the input advances by stride.w.
template <class Row>
void for_each_row(const ConvDims& d, std::int64_t tap, Row&& row) {
  const AxisSizes at{tap / (d.kernel.h * d.kernel.w), tap / d.kernel.w % d.kernel.h, tap % d.kernel.w};
  const SpatialExtents y = d.out();
  const auto reached = [&](int axis) {
    return outputs_inside(d.in[axis], y[axis], d.stride[axis], d.pad[axis], at[axis] * d.dil[axis]);
  };
  const auto met = [&](int axis, std::int64_t i) { return i * d.stride[axis] - d.pad[axis] + at[axis] * d.dil[axis]; };
  const Inside os = reached(0), ps = reached(1), qs = reached(2);
  for (std::int64_t o = os.begin; o < os.end; ++o)
    for (std::int64_t p = ps.begin; p < ps.end; ++p)
      row((o * y.h + p) * y.w + qs.begin, (met(0, o) * d.in.h + met(1, p)) * d.in.w + met(2, qs.begin),
          qs.end - qs.begin);
}

std::int64_t taps(const ConvDims& d) { return d.kernel.d * d.kernel.h * d.kernel.w; }

// Calls body(x_at, w_at, y_at) for every pair of an input and an output channel of one group, with the offsets of the
// planes of x and y and of the window of w. Output channels are outermost.
template <class Body>
void for_each_pair(const ConvDims& d, Body&& body) {
  const std::int64_t cs = d.C / d.groups, ks = d.K / d.groups;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t k = 0; k < d.K; ++k)
      for (std::int64_t j = 0; j < cs; ++j) {
        const std::int64_t c = k / ks * cs + j;
        body((n * d.C + c) * d.in.cells(), (k * cs + j) * taps(d), (n * d.K + k) * d.out().cells());
      }
}

template <class T>
void forward(const ConvDims& d, const OpArgs& args, std::vector<double>& y_sums) {
  const T *x = in<T>(args, 0), *w = in<T>(args, 1), *b = d.bias ? in<T>(args, 2) : nullptr;
  const Output<T> y(args, d.bias ? 3 : 2);
  const std::int64_t plane = d.out().cells();
  for (std::int64_t nk = 0; nk < d.N * d.K; ++nk)
    std::fill_n(y_sums.data() + nk * plane, plane, b ? static_cast<double>(b[nk % d.K]) : 0.0);
  for_each_pair(d, [&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
    for (std::int64_t tap = 0; tap < taps(d); ++tap) {
      const auto weight = static_cast<double>(w[w_at + tap]);
      for_each_row(d, tap, [&](std::int64_t out, std::int64_t from, std::int64_t count) {
        double* sums = y_sums.data() + y_at + out;
        const T* values = x + x_at + from;
        for (std::int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<double>(values[i * d.stride.w]);
      });
    }
  });
  for (std::size_t i = 0; i < y_sums.size(); ++i) y.put(static_cast<std::int64_t>(i), y_sums[i]);
}

template <class T>
void backward_data(const ConvDims& d, const OpArgs& args, std::vector<double>& dx_sums) {
  const T *dy = in<T>(args, 0), *w = in<T>(args, 1);
  const Output<T> dx(args, 2);
  std::fill(dx_sums.begin(), dx_sums.end(), 0.0);
  for_each_pair(d, [&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
    for (std::int64_t tap = 0; tap < taps(d); ++tap) {
      const auto weight = static_cast<double>(w[w_at + tap]);
      for_each_row(d, tap, [&](std::int64_t out, std::int64_t from, std::int64_t count) {
        double* sums = dx_sums.data() + x_at + from;
        const T* values = dy + y_at + out;
        for (std::int64_t i = 0; i < count; ++i) sums[i * d.stride.w] += weight * static_cast<double>(values[i]);
      });
    }
  });
  for (std::size_t i = 0; i < dx_sums.size(); ++i) dx.put(static_cast<std::int64_t>(i), dx_sums[i]);
}

template <class T>
void backward_weights(const ConvDims& d, const OpArgs& args, std::vector<double>& dw_sums) {
  const T *x = in<T>(args, 0), *dy = in<T>(args, 1);
  const Output<T> dw(args, 2);
  std::fill(dw_sums.begin(), dw_sums.end(), 0.0);
  for_each_pair(d, [&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
    for (std::int64_t tap = 0; tap < taps(d); ++tap) {
      double sum = 0;
      for_each_row(d, tap, [&](std::int64_t out, std::int64_t from, std::int64_t count) {
        const T *values = x + x_at + from, *gradients = dy + y_at + out;
        for (std::int64_t i = 0; i < count; ++i)
          sum += static_cast<double>(values[i * d.stride.w]) * static_cast<double>(gradients[i]);
      });
      dw_sums[static_cast<std::size_t>(w_at + tap)] += sum;
    }
  });
  for (std::size_t i = 0; i < dw_sums.size(); ++i) dw.put(static_cast<std::int64_t>(i), dw_sums[i]);
  if (!d.bias) return;
  const Output<T> db(args, 3);
  const std::int64_t plane = d.out().cells();
  for (std::int64_t k = 0; k < d.K; ++k) {
    double sum = 0;
    for (std::int64_t n = 0; n < d.N; ++n)
      for (std::int64_t i = 0; i < plane; ++i) sum += static_cast<double>(dy[(n * d.K + k) * plane + i]);
    db.put(k, sum);
  }
}

}  // namespace

std::unique_ptr<Op> make_conv(const OpSpec& spec) {
  const auto d = std::get<ConvDims>(spec.dims);
  const auto sums = [](std::int64_t elems) { return std::vector<double>(static_cast<std::size_t>(elems)); };
  return with_float(spec.dtype, [&]<class T>(T) {
    switch (spec.kind) {
      case OpKind::conv_forward:
        return loop_op([d, y = sums(d.N * d.K * d.out().cells())](const OpArgs& a) mutable { forward<T>(d, a, y); });
      case OpKind::conv_backward_data:
        return loop_op(
            [d, dx = sums(d.N * d.C * d.in.cells())](const OpArgs& a) mutable { backward_data<T>(d, a, dx); });
      case OpKind::conv_backward_weights:
        return loop_op([d, dw = sums(d.weights())](const OpArgs& a) mutable { backward_weights<T>(d, a, dw); });
      default: not_of_family(spec);
    }
  });
}

}  // namespace echelon::inline device::reference
