// What a step on one thread and on several says of its serial part (Amdahl 1967).
#pragma once

#include <algorithm>

namespace echelon::cli {

// The share of the time on one thread that more threads do not shorten, in [0, 1]: measured times scatter.
constexpr double serial_share(double on_one_s, double on_several_s, int threads) {
  if (threads < 2 || on_one_s <= 0) return 0;
  return std::clamp((threads * on_several_s / on_one_s - 1) / (threads - 1), 0.0, 1.0);
}

// How many times as fast as one thread so many are, at most.
constexpr double amdahl_speedup(double serial, int threads) { return 1 / (serial + (1 - serial) / threads); }

}  // namespace echelon::cli
