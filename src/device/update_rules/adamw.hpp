// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov, Hutter 2019) in PyTorch's form: Adam with the weight decay separate from the moments.
//   w *= 1 - lr*decay
//   then the step of adam.hpp with g' = clip*g
#pragma once

#include "device/update_rules/adam.hpp"

namespace echelon::inline device {

struct AdamWRule {
  static constexpr const char* kName = "adamw";
  static constexpr int kStates = 2;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    w *= static_cast<T>(1 - s.learning_rate * s.weight_decay);
    w -= static_cast<T>(s.learning_rate * s.trust) * moments_ratio(static_cast<T>(s.clip) * g, states, i, s);
  }
};

}  // namespace echelon::inline device
