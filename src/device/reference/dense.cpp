// SPDX-License-Identifier: Apache-2.0
// Dense layers: y = x w^T + b with x (N, F), w (K, F), y (N, K).
#include <algorithm>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Adds factor * row[f] to sums[f].
template <class T>
void add_row(std::vector<double>& sums, T factor, const T* row) {
  for (std::size_t f = 0; f < sums.size(); ++f) sums[f] += static_cast<double>(factor) * static_cast<double>(row[f]);
}

template <class T>
void forward(const DenseDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *w = in<T>(args, 1), *b = d.bias ? in<T>(args, 2) : nullptr;
  const Output<T> y(args, d.bias ? 3 : 2);
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t k = 0; k < d.K; ++k) {
      double sum = b ? static_cast<double>(b[k]) : 0.0;
      for (std::int64_t f = 0; f < d.F; ++f)
        sum += static_cast<double>(x[n * d.F + f]) * static_cast<double>(w[k * d.F + f]);
      y.put(n * d.K + k, sum);
    }
}

template <class T>
void backward_data(const DenseDims& d, const OpArgs& args, std::vector<double>& row) {
  const T *dy = in<T>(args, 0), *w = in<T>(args, 1);
  const Output<T> dx(args, 2);
  for (std::int64_t n = 0; n < d.N; ++n) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::int64_t k = 0; k < d.K; ++k) add_row(row, dy[n * d.K + k], w + k * d.F);
    for (std::int64_t f = 0; f < d.F; ++f) dx.put(n * d.F + f, row[static_cast<std::size_t>(f)]);
  }
}

template <class T>
void backward_weights(const DenseDims& d, const OpArgs& args, std::vector<double>& row) {
  const T *x = in<T>(args, 0), *dy = in<T>(args, 1);
  const Output<T> dw(args, 2);
  for (std::int64_t k = 0; k < d.K; ++k) {
    std::fill(row.begin(), row.end(), 0.0);
    double bias = 0;
    for (std::int64_t n = 0; n < d.N; ++n) {
      add_row(row, dy[n * d.K + k], x + n * d.F);
      bias += static_cast<double>(dy[n * d.K + k]);
    }
    for (std::int64_t f = 0; f < d.F; ++f) dw.put(k * d.F + f, row[static_cast<std::size_t>(f)]);
    if (d.bias) Output<T>(args, 3).put(k, bias);
  }
}

}  // namespace

std::unique_ptr<Op> make_dense(const OpSpec& spec) {
  const auto d = std::get<DenseDims>(spec.dims);
  std::vector<double> row(static_cast<std::size_t>(d.F));
  return with_float(spec.dtype, [&]<class T>(T) {
    switch (spec.kind) {
      case OpKind::dense_forward: return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
      case OpKind::dense_backward_data:
        return loop_op([d, row](const OpArgs& a) mutable { backward_data<T>(d, a, row); });
      case OpKind::dense_backward_weights:
        return loop_op([d, row](const OpArgs& a) mutable { backward_weights<T>(d, a, row); });
      default: not_of_family(spec);
    }
  });
}

}  // namespace echelon::inline device::reference
