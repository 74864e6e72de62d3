// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum and weight decay (Sutskever et al. 2013) in PyTorch's form:
//   g' = clip*g + decay*w
//   v  = momentum*v + g'      (v begins at 0, so it is g' after the first step)
//   w -= lr*trust * (nesterov ? g' + momentum*v : v)
#pragma once

#include "device/update_rules/rule.hpp"

namespace echelon::inline device {

struct SgdRule {
  static constexpr const char* kName = "sgd";
  static constexpr int kStates = 1;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    const T gradient = static_cast<T>(s.clip) * g + static_cast<T>(s.weight_decay) * w;
    T& velocity = states[0][i];
    velocity = static_cast<T>(s.momentum) * velocity + gradient;  // velocity starts at zero
    const T direction = s.nesterov ? gradient + static_cast<T>(s.momentum) * velocity : velocity;
    w -= static_cast<T>(s.learning_rate * s.trust) * direction;
  }
};

// The same with momentum = 0, which needs no velocity: w -= lr*trust * g'.
struct PlainSgdRule {
  static constexpr const char* kName = "plain_sgd";
  static constexpr int kStates = 0;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const*, std::size_t, const RuleScalars& s) {
    const T gradient = static_cast<T>(s.clip) * g + static_cast<T>(s.weight_decay) * w;
    w -= static_cast<T>(s.learning_rate * s.trust) * gradient;
  }
};

// Running statistics of batch norm, kept as parameters of kind `statistic`: w = (1 - momentum)*w + momentum*g.
struct RunningAverageRule {
  static constexpr const char* kName = "running_average";
  static constexpr int kStates = 0;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const*, std::size_t, const RuleScalars& s) {
    w += static_cast<T>(s.momentum) * (g - w);
  }
};

}  // namespace echelon::inline device
