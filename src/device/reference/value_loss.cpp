// SPDX-License-Identifier: Apache-2.0
// Losses of real numbers against targets, device/ops/value_loss.hpp.
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

double target(const ValueLossDims& d, const OpArgs& args, DType dtype, std::int64_t e) {
  if (d.index_targets) return in<std::int32_t>(args, 1)[e];
  return with_float(dtype, [&]<class T>(T) { return static_cast<double>(in<T>(args, 1)[e]); });
}

double loss_at(ValueLoss loss, double x, double t) {
  switch (loss) {
    case ValueLoss::squared: return (x - t) * (x - t);
    case ValueLoss::logistic: return std::fmax(x, 0) - x * t + std::log1p(std::exp(-std::fabs(x)));
    case ValueLoss::absolute: return std::fabs(x - t);
    case ValueLoss::hinge: return std::fmax(0, 1 - (t > 0.5 ? x : -x));
  }
  return 0;
}

double slope_at(ValueLoss loss, double x, double t) {
  switch (loss) {
    case ValueLoss::squared: return 2 * (x - t);
    case ValueLoss::logistic: return 1 / (1 + std::exp(-x)) - t;
    case ValueLoss::absolute: return (x > t ? 1 : 0) - (x < t ? 1 : 0);
    case ValueLoss::hinge: return t > 0.5 ? (x < 1 ? -1 : 0) : (x > -1 ? 1 : 0);
  }
  return 0;
}

template <class T>
void forward(const ValueLossDims& d, const OpArgs& args) {
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t e = 0; e < d.elems; ++e) {
    const auto x = static_cast<double>(in<T>(args, 0)[e]), w = static_cast<double>(in<T>(args, 2)[e]);
    const double t = target(d, args, dtype_of<T>, e);
    loss += w * loss_at(d.loss, x, t);
    if (is_of_two(d.loss)) correct += (x > 0) == (t > 0.5) ? w : 0;
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
    dx.put(e, args.scale * w * slope_at(d.loss, x, t));
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
