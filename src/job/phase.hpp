// What this rank is doing, as the watchdog and error messages read it. One writer (the compute thread), any reader.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace echelon::inline job {

// A server waits for workers that do something without it, and how long is theirs to watch.
inline constexpr const char* kStandBy = "standing by";

class PhaseBoard {
 public:
  explicit PhaseBoard(const Clock& clock = host_clock()) : clock_(clock), since_s_(clock.now_s()) {}

  // `name` must be a literal.
  void enter(const char* name) {
    since_s_.store(clock_.now_s(), std::memory_order_relaxed);
    name_.store(name, std::memory_order_relaxed);
  }
  void at_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }

  const char* name() const { return name_.load(std::memory_order_relaxed); }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  double since_s() const { return since_s_.load(std::memory_order_relaxed); }

 private:
  const Clock& clock_;
  std::atomic<const char*> name_{"start"};
  std::atomic<std::int64_t> step_{0};
  std::atomic<double> since_s_;
};

}  // namespace echelon::inline job
