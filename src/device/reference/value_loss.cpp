// SPDX-License-Identifier: Apache-2.0
// Losses of real numbers against targets: squared distance, and logistic (binary cross-entropy of logits).
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

double target(const ValueLossDims& d, const OpArgs& args, DType dtype, std::int64_t e) {
  if (d.index_targets) return in<std::int32_t>(args, 1)[e];
  return with_float(dtype, [&]<class T>(T) { return static_cast<double>(in<T>(args, 1)[e]); });
}

template <class T>
void forward(const ValueLossDims& d, const OpArgs& args) {
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t e = 0; e < d.elems; ++e) {
    const auto x = static_cast<double>(in<T>(args, 0)[e]), w = static_cast<double>(in<T>(args, 2)[e]);
    const double t = target(d, args, dtype_of<T>, e);
    if (d.loss == ValueLoss::squared) {
      loss += w * (x - t) * (x - t);
    } else {
      loss += w * (std::fmax(x, 0) - x * t + std::log1p(std::exp(-std::fabs(x))));
      correct += (x > 0) == (t > 0.5) ? w : 0;
    }
    weight += w;
  }
  const Output<double> sums(args, 3);
  sums.put(0, loss);
  sums.put(1, correct);
  sums.put(2, weight);
}

template <class T>
void backward(const ValueLossDims& d, const OpArgs& args) {
  const Output<T> dx(args, 3);
  for (std::int64_t e = 0; e < d.elems; ++e) {
    const auto x = static_cast<double>(in<T>(args, 0)[e]), w = static_cast<double>(in<T>(args, 2)[e]);
    const double t = target(d, args, dtype_of<T>, e);
    const double slope = d.loss == ValueLoss::squared ? 2 * (x - t) : 1 / (1 + std::exp(-x)) - t;
    dx.put(e, args.scale * w * slope);
  }
}

}  // namespace

std::unique_ptr<Op> make_value_loss(const OpSpec& spec) {
  const auto d = std::get<ValueLossDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::loss_values_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::loss_values_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
