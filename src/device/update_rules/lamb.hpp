// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020, algorithm 2, with phi the identity): Adam's direction, scaled by a ratio of each layer.
//   first pass, `lamb`:      m, v as in adam.hpp from clip*g
//                            u  = m^ / (sqrt(v^) + epsilon) + decay*w      m^, v^ unbiased; w is not changed
//   then, for the whole parameter: trust = |w| / |u|; 1 if either norm is 0, and for biases and batch norm
//   second pass, `descend`:  w -= lr*trust * u
// The third state holds u between the passes; its content is not needed after the step.
#pragma once

#include "device/update_rules/adam.hpp"

namespace echelon::inline device {

struct LambRule {
  static constexpr const char* kName = "lamb";
  static constexpr int kStates = 3;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s) {
    states[2][i] = moments_ratio(static_cast<T>(s.clip) * g, states, i, s) + static_cast<T>(s.weight_decay) * w;
  }
};

// One step along a given direction: w -= lr*trust * g.
struct DescendRule {
  static constexpr const char* kName = "descend";
  static constexpr int kStates = 0;

  template <class T>
  static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const*, std::size_t, const RuleScalars& s) {
    w -= static_cast<T>(s.learning_rate * s.trust) * g;
  }
};

}  // namespace echelon::inline device
