// SPDX-License-Identifier: Apache-2.0
// The phase of this rank, for the watchdog and error messages. One writer (the compute thread; for news the engine's
// thread), any number of readers. The values are separate relaxed atomics and may be from different moments.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace echelon::inline job {

// The phase of a rank while others work without it, such as a server while workers evaluate or save. Its waits are not
// watched; those of the others are.
inline constexpr char kStandBy[] = "standing by";  // an array, identified by its address

// Called for each phase that begins, on the thread that begins it (fault/injector.hpp).
class PhaseListener {
 public:
  virtual ~PhaseListener() = default;
  virtual void entered(const char* phase, std::int64_t step) = 0;
};

class PhaseBoard {
 public:
  explicit PhaseBoard(const Clock& clock = host_clock()) : clock_(clock), since_s_(clock.now_s()) {}

  // `name` must be a string literal (the pointer is kept).
  void enter(const char* name) {
    since_s_.store(clock_.now_s(), std::memory_order_relaxed);
    name_.store(name, std::memory_order_relaxed);
    if (listener_ != nullptr) listener_->entered(name, step());
  }
  void listen(PhaseListener* listener) { listener_ = listener; }  // null: none. Called by the writer
  void at_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }
  // Some rank of the run has finished a step (train/control/news.hpp).
  void hear_of_step() { heard_s_.store(clock_.now_s(), std::memory_order_relaxed); }

  const char* name() const { return name_.load(std::memory_order_relaxed); }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  double since_s() const { return since_s_.load(std::memory_order_relaxed); }
  double heard_of_step_s() const { return heard_s_.load(std::memory_order_relaxed); }

 private:
  const Clock& clock_;
  PhaseListener* listener_ = nullptr;
  std::atomic<const char*> name_{"start"};
  std::atomic<std::int64_t> step_{0};
  std::atomic<double> since_s_, heard_s_{0};
};

}  // namespace echelon::inline job
