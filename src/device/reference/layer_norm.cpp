// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of rows.
//
//   dx = istd * (g - mean(g) - xhat * mean(g * xhat)),  g = gamma * dy
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void forward(const LayerNormDims& d, const OpArgs& args) {
  const T *gamma = in<T>(args, 1), *beta = in<T>(args, 2);
  const Output<T> y(args, 3);
  const Output<double> stats(args, 4);
  const auto F = static_cast<double>(d.F);
  for (std::int64_t r = 0; r < d.rows(); ++r) {
    const T* x = in<T>(args, 0) + r * d.F;
    double sum = 0, squares = 0;
    for (std::int64_t f = 0; f < d.F; ++f) sum += static_cast<double>(x[f]);
    const double mean = sum / F;
    for (std::int64_t f = 0; f < d.F; ++f)
      squares += (static_cast<double>(x[f]) - mean) * (static_cast<double>(x[f]) - mean);
    const double istd = 1 / std::sqrt(squares / F + d.epsilon);
    for (std::int64_t f = 0; f < d.F; ++f)
      y.put(r * d.F + f,
            static_cast<double>(gamma[f]) * (static_cast<double>(x[f]) - mean) * istd + static_cast<double>(beta[f]));
    stats.put(r, mean);
    stats.put(d.rows() + r, istd);
  }
}

template <class T>
void backward(const LayerNormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *dy = in<T>(args, 1), *gamma = in<T>(args, 3);
  const auto* stats = in<double>(args, 2);
  const Output<T> dx(args, 4), dgamma(args, 5), dbeta(args, 6);
  const auto F = static_cast<double>(d.F);
  const auto xhat = [&](std::int64_t r, std::int64_t f) {
    return (static_cast<double>(x[r * d.F + f]) - stats[r]) * stats[d.rows() + r];
  };
  const auto pull = [&](std::int64_t r, std::int64_t f) { return static_cast<double>(dy[r * d.F + f]); };
  for (std::int64_t r = 0; r < d.rows(); ++r) {
    double sum = 0, product = 0;
    for (std::int64_t f = 0; f < d.F; ++f) {
      const double g = static_cast<double>(gamma[f]) * pull(r, f);
      sum += g;
      product += g * xhat(r, f);
    }
    for (std::int64_t f = 0; f < d.F; ++f)
      dx.put(r * d.F + f,
             stats[d.rows() + r] * (static_cast<double>(gamma[f]) * pull(r, f) - sum / F - xhat(r, f) * product / F));
  }
  for (std::int64_t f = 0; f < d.F; ++f) {
    double product = 0, sum = 0;
    for (std::int64_t r = 0; r < d.rows(); ++r) {
      product += pull(r, f) * xhat(r, f);
      sum += pull(r, f);
    }
    dgamma.put(f, product);
    dbeta.put(f, sum);
  }
}

}  // namespace

std::unique_ptr<Op> make_layer_norm(const OpSpec& spec) {
  const auto d = std::get<LayerNormDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::layer_norm_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::layer_norm_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
