// SPDX-License-Identifier: Apache-2.0
// The serial part of a step, from its times on one thread and on several (Amdahl 1967).
#pragma once

#include <algorithm>

namespace echelon::cli {

// The share of the one-thread time that more threads do not shorten, clamped to [0, 1] because measured times scatter.
constexpr double serial_share(double on_one_s, double on_several_s, int threads) {
  if (threads < 2 || on_one_s <= 0) return 0;
  return std::clamp((threads * on_several_s / on_one_s - 1) / (threads - 1), 0.0, 1.0);
}

// The largest speed-up over one thread that this many threads can reach.
constexpr double amdahl_speedup(double serial, int threads) { return 1 / (serial + (1 - serial) / threads); }

}  // namespace echelon::cli
