#include "comm/ticket.hpp"

#include <immintrin.h>

#include "base/clock.hpp"

namespace echelon {

void Ticket::State::finish(std::exception_ptr with) {
  error = std::move(with);
  finished_s = now_s();
  done.store(1, std::memory_order_release);
  done.notify_all();
}

bool Ticket::done() const { return !state_ || state_->done.load(std::memory_order_acquire) != 0; }

void Ticket::wait() const {
  constexpr double kSpin_s = 20e-6;
  if (!state_) return;
  if (!done()) {
    const double until_s = now_s() + kSpin_s;
    while (!done() && now_s() < until_s) _mm_pause();
    state_->done.wait(0, std::memory_order_acquire);
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

double Ticket::started_s() const { return state_ ? state_->started_s.load(std::memory_order_relaxed) : 0; }

double Ticket::finished_s() const { return state_ && done() ? state_->finished_s : 0; }

}  // namespace echelon
