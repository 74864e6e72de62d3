// SPDX-License-Identifier: Apache-2.0
#include "comm/ticket.hpp"

namespace echelon::inline comm {

void Ticket::State::finish(std::exception_ptr with, double now_s) {
  error = std::move(with);
  finished_s = now_s;
  done.store(1, std::memory_order_release);
  done.notify_all();
}

bool Ticket::done() const { return !state_ || state_->is_done(); }

void Ticket::wait() const {
  if (!state_) return;
  if (!done())
    if (const std::shared_ptr<Driver> driver = state_->driver.lock()) driver->drive_until(*state_);
  state_->done.wait(0, std::memory_order_acquire);
  if (state_->error) std::rethrow_exception(state_->error);
}

double Ticket::started_s() const { return state_ ? state_->started_s.load(std::memory_order_relaxed) : 0; }

double Ticket::finished_s() const { return state_ && done() ? state_->finished_s : 0; }

bool Promise::pending() const { return state_ && !state_->is_done(); }

void Promise::fulfil(double started_s, double now_s, const WireCounters& wire) {
  state_->started_s.store(started_s, std::memory_order_relaxed);
  state_->wire = wire;
  state_->finish(nullptr, now_s);
}

void Promise::fail(std::exception_ptr error, double now_s) {
  if (pending()) state_->finish(std::move(error), now_s);
}

WireCounters Ticket::wire() const { return state_ && done() ? state_->wire : WireCounters{}; }

}  // namespace echelon::inline comm
