// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma, Ba 2015) in PyTorch's form, weight decay as an L2 term of the gradient:
//   g' = clip*g + decay*w
//   m  = beta1*m + (1 - beta1)*g'        v = beta2*v + (1 - beta2)*g'^2
//   w -= lr*trust / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
#pragma once

#include <cmath>

#include "device/update_rules/rule.hpp"

namespace echelon::inline device {

// Updates both moments of element i with `gradient`; returns the unbiased ratio m / (sqrt(v) + epsilon).
template <class T>
ECHELON_HOST_DEVICE T moments_ratio(T gradient, T* const* states, std::size_t i, const RuleScalars& s) {
  T& first = states[0][i];
  T& second = states[1][i];
  first = static_cast<T>(s.beta1) * first + static_cast<T>(1 - s.beta1) * gradient;
  second = static_cast<T>(s.beta2) * second + static_cast<T>(1 - s.beta2) * gradient * gradient;
  return static_cast<T>(s.unbias1) * first /
         (static_cast<T>(s.unbias2) * std::sqrt(second) + static_cast<T>(s.epsilon));
}

struct AdamRule {
  static constexpr const char* kName = "adam";
  static constexpr int kStates = 2;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    const T gradient = static_cast<T>(s.clip) * g + static_cast<T>(s.weight_decay) * w;
    w -= static_cast<T>(s.learning_rate * s.trust) * moments_ratio(gradient, states, i, s);
  }
};

}  // namespace echelon::inline device
