// SPDX-License-Identifier: Apache-2.0
// Delay compensation of a stale gradient (DC-ASGD: Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay
// Compensation", ICML 2017), compiled by every device. g was computed at W_pulled and is applied to W. To first order,
// with the Hessian replaced by the diagonal of g g^T, the gradient at W is
//
//   g' = g + lambda g^2 (W - W_pulled)                                      products are elementwise
//
// lambda is constant (DC-ASGD-c), or divided by a running root mean square of gradients (DC-ASGD-a):
//   m = decay m + (1 - decay) g^2;   lambda_t = lambda / sqrt(m + 1e-7)
//
// Workers may push a change of weights with learning rate eta instead: u = -eta g, so that g = -u / eta, and
//   u' = -eta g' = u - (lambda / eta) u^2 (W - W_pulled)
// With momentum or another rule u / eta takes the place of the gradient.
#pragma once

#include <cmath>

#include "base/hash_rng.hpp"

namespace echelon::inline device {

struct DelayCompensation {
  double lambda = 0;  // 0: off
  double decay = 0;   // 0: lambda is constant

  bool on() const { return lambda > 0; }
  bool adapts() const { return on() && decay > 0; }
};

// The values of one update, in the device's memory and all of one dtype.
struct CompensatedUpdate {
  void* out = nullptr;           // may be `values`
  const void* values = nullptr;  // gradients, or changes of weights
  double rate = 0;               // 0: `values` are gradients; > 0: they are changes with this learning rate
  const void* weights = nullptr;
  const void* pulled = nullptr;
  void* mean_square = nullptr;  // only if lambda adapts
};

// The computation for value i. T: float or double.
template <class T, bool adapts>
class Compensate {
 public:
  Compensate(const DelayCompensation& how, const CompensatedUpdate& update)
      : to_gradient_(static_cast<T>(update.rate > 0 ? -1 / update.rate : 1)),
        from_gradient_(static_cast<T>(update.rate > 0 ? -update.rate : 1)),
        lambda_(static_cast<T>(how.lambda)),
        decay_(static_cast<T>(how.decay)),
        values_(static_cast<const T*>(update.values)),
        weights_(static_cast<const T*>(update.weights)),
        pulled_(static_cast<const T*>(update.pulled)),
        out_(static_cast<T*>(update.out)),
        mean_square_(static_cast<T*>(update.mean_square)) {}

  ECHELON_HOST_DEVICE void operator()(auto i) const {
    const T gradient = to_gradient_ * values_[i], square = gradient * gradient;
    T factor = lambda_;
    if constexpr (adapts) {
      mean_square_[i] = decay_ * mean_square_[i] + (1 - decay_) * square;
      factor /= std::sqrt(mean_square_[i] + static_cast<T>(kEpsilon));
    }
    out_[i] = values_[i] + from_gradient_ * (factor * square * (weights_[i] - pulled_[i]));
  }

 private:
  static constexpr double kEpsilon = 1e-7;
  T to_gradient_, from_gradient_, lambda_, decay_;
  const T *values_, *weights_, *pulled_;
  T *out_, *mean_square_;
};

}  // namespace echelon::inline device
