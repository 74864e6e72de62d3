// SPDX-License-Identifier: Apache-2.0
// Optimiser rules: one elementwise function per rule, which each device compiles into one fused pass over a range of
// the arena.
//
// A rule is a struct of static members, free of host-only code:
//
// clang-format off
//   struct SgdRule {
//     static constexpr const char* kName = "sgd";
//     static constexpr int kStates = 1;                          // values kept per parameter, each its own flat arena
//     template <class T>
//     static ECHELON_HOST_DEVICE void apply(T& w, T g, T* const* states, std::size_t i, const RuleScalars& s);
//   };
// clang-format on
//
// The scalars apply to one parameter range in one step; optim/ sets them from the schedule and the range's group. Norms
// that a rule needs over a whole layer (LARS, LAMB, global clip) are measured separately (VectorOps::sum_squares over
// the range), summed over ranks by the optimiser, and passed as `trust` and `clip`. A rule that needs the norm of its
// own update (LAMB) takes two passes: the first writes its direction into a state, `descend` applies it.
// A rule works on one element at a time: it reads and writes only w[i], g[i] and states[s][i], so that the order and
// the number of threads do not change a bit.
//
// To add a rule: one header here, one line in ECHELON_UPDATE_RULES, and its defaults for the schedule in optim/.
#pragma once

#include <cstddef>

#include "base/hash_rng.hpp"

namespace echelon::inline device {

struct RuleScalars {
  double learning_rate = 0.01;
  double momentum = 0.0;
  double weight_decay = 0.0;  // 0 for parameters that do not decay (biases, batch norm)
  bool nesterov = false;
  double trust = 1.0;     // per-layer ratio (LARS, LAMB)
  double clip = 1.0;      // factor on the gradient from global clipping
  double beta1 = 0.9;     // decay of the first moment (Adam and its kin)
  double beta2 = 0.999;   // decay of the second moment (Adam and its kin; RMSProp's alpha)
  double epsilon = 1e-8;  // added to the root of the second moment
  double unbias1 = 1.0;   // 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t) at update t = step + 1, from the host: moments
  double unbias2 = 1.0;   // begin at zero, and these compensate for it
  long long step = 0;     // number of updates before this one
};

}  // namespace echelon::inline device
