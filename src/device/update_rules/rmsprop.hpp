// SPDX-License-Identifier: Apache-2.0
// RMSProp (Tieleman, Hinton 2012) in PyTorch's form, not centred, with momentum over the scaled gradient:
//   g' = clip*g + decay*w
//   v  = beta2*v + (1 - beta2)*g'^2          (beta2 is the config's alpha)
//   b  = momentum*b + g' / (sqrt(v) + epsilon)
//   w -= lr*trust * b
#pragma once

#include <cmath>

#include "device/update_rules/rule.hpp"

namespace echelon::inline device {

struct RmspropRule {
  static constexpr const char* kName = "rmsprop";
  static constexpr int kStates = 2;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    const T gradient = static_cast<T>(s.clip) * g + static_cast<T>(s.weight_decay) * w;
    T& square = states[0][i];
    T& velocity = states[1][i];
    square = static_cast<T>(s.beta2) * square + static_cast<T>(1 - s.beta2) * gradient * gradient;
    velocity = static_cast<T>(s.momentum) * velocity + gradient / (std::sqrt(square) + static_cast<T>(s.epsilon));
    w -= static_cast<T>(s.learning_rate * s.trust) * velocity;
  }
};

}  // namespace echelon::inline device
