#include "comm/ticket.hpp"

#include "base/clock.hpp"

namespace echelon {

void Ticket::State::finish(std::exception_ptr with) {
  error = std::move(with);
  finished_s = now_s();
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

WireCounters Ticket::wire() const { return state_ && done() ? state_->wire : WireCounters{}; }

}  // namespace echelon
