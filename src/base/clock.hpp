// SPDX-License-Identifier: Apache-2.0
// Time in seconds. Code that waits or measures gets a `Clock`; only programs that measure the machine itself (the
// benchmarks of cli/) read `now_s()`.
#pragma once

#include <chrono>

namespace echelon::inline base {

// The monotonic clock of this host (CLOCK_MONOTONIC): seconds since an arbitrary start, not comparable between hosts.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A source of time: the host's, or a virtual one (comm/virtual/), which advances only between two calls of its world.
// Any thread may read it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now_s() const = 0;  // never decreases
};

class HostClock final : public Clock {
 public:
  double now_s() const override { return echelon::now_s(); }
};

inline const Clock& host_clock() {
  static const HostClock clock;
  return clock;
}

// Adds the seconds of its lifetime to `total_s`, also if an exception unwinds. `total_s` and `clock` must outlive it.
class ScopedTimer {
 public:
  explicit ScopedTimer(double& total_s, const Clock& clock = host_clock())
      : total_s_(total_s), clock_(clock), start_s_(clock.now_s()) {}
  ~ScopedTimer() { total_s_ += clock_.now_s() - start_s_; }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  double& total_s_;
  const Clock& clock_;
  double start_s_;
};

}  // namespace echelon::inline base
