// SPDX-License-Identifier: Apache-2.0
// LARS (You, Gitman, Ginsburg 2017, algorithm 1): momentum whose steps are scaled by a ratio of each layer.
//   trust = eta*|w| / (|g| + decay*|w|)      for the whole parameter, g clipped; 1 if either norm is 0, and for biases
//                                            and batch norm (optim/ measures it)
//   v  = momentum*v + lr*trust * (clip*g + decay*w)
//   w -= v
// The learning rate is a factor inside v: each gradient in the velocity keeps the rate of the step that added it.
#pragma once

#include "device/update_rules/rule.hpp"

namespace echelon::inline device {

struct LarsRule {
  static constexpr const char* kName = "lars";
  static constexpr int kStates = 1;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    const T gradient = static_cast<T>(s.clip) * g + static_cast<T>(s.weight_decay) * w;
    T& velocity = states[0][i];
    velocity = static_cast<T>(s.momentum) * velocity + static_cast<T>(s.learning_rate * s.trust) * gradient;
    w -= velocity;
  }
};

}  // namespace echelon::inline device
