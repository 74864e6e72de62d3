// SPDX-License-Identifier: Apache-2.0
// Activations; their derivatives are functions of the output, that of gelu of the input.
#include <cmath>
#include <numbers>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Phi(x), the probability that a standard normal variable is below x.
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double value(const ActivationDims& d, double x) {
  switch (d.function) {
    case Activation::relu: return x < 0 ? 0 : x;  // NaN stays NaN
    case Activation::tanh: return std::tanh(x);
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::gelu: return x * normal_share(x);
    case Activation::leaky_relu: return x < 0 ? d.a * x : x;
    case Activation::elu: return x < 0 ? d.a * std::expm1(x) : x;
    case Activation::softplus: return (x > 0 ? x : 0 * x) + std::log1p(std::exp(-std::abs(x)));
    case Activation::scale: return d.a * x;
  }
  return 0;
}

double slope(const ActivationDims& d, double y) {
  switch (d.function) {
    case Activation::relu: return y > 0 ? 1 : 0;
    case Activation::tanh: return 1 - y * y;
    case Activation::sigmoid: return y * (1 - y);
    case Activation::gelu:  // y is x
      return normal_share(y) + y * std::exp(-y * y / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::leaky_relu: return y > 0 ? 1 : d.a;
    case Activation::elu: return y > 0 ? 1 : y + d.a;
    case Activation::softplus: return -std::expm1(-y);  // sigmoid(x)
    case Activation::scale: return d.a;
  }
  return 0;
}

template <class T>
void forward(const ActivationDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const Output<T> y(args, 1);
  for (std::int64_t i = 0; i < d.shape.elems(); ++i) y.put(i, value(d, static_cast<double>(x[i])));
}

template <class T>
void backward(const ActivationDims& d, const OpArgs& args) {
  const T *y = in<T>(args, 0), *dy = in<T>(args, 1);
  const Output<T> dx(args, 2);
  for (std::int64_t i = 0; i < d.shape.elems(); ++i)
    dx.put(i, static_cast<double>(dy[i]) * slope(d, static_cast<double>(y[i])));
}

}  // namespace

std::unique_ptr<Op> make_activation(const OpSpec& spec) {
  const auto d = std::get<ActivationDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::activation_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::activation_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
