// SPDX-License-Identifier: Apache-2.0
// The state behind a Ticket, and how the engine completes it. Internal to comm/.
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include "comm/engine.hpp"

namespace echelon::inline comm {

// A driver that makes progress on tickets: the engine as seen by a thread that waits.
class Driver {
 public:
  virtual ~Driver() = default;
  // Runs passes of the engine on this thread until the ticket is done. Returns at once where another thread drives.
  virtual void drive_until(const Ticket::State& done) = 0;
};

struct Ticket::State {
  std::atomic<int> done = 0;  // published last
  std::atomic<double> started_s = 0;
  double finished_s = 0;
  WireCounters wire;
  std::exception_ptr error;
  std::weak_ptr<Driver> driver;

  bool is_done() const { return done.load(std::memory_order_acquire) != 0; }
  // Publishes the end, once, and wakes all waiting threads.
  void finish(std::exception_ptr with, double now_s);
};

}  // namespace echelon::inline comm
