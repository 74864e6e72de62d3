// SPDX-License-Identifier: Apache-2.0
#include "device/paced/pacer.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace echelon::inline device {
namespace {

// A longer delay (a stopped process) is deducted only up to this limit; otherwise ops would take no time for long.
constexpr double kMostCredit_s = 5e-3;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// By default Linux lets a thread's timers expire up to 50 us late.
void wake_punctually() {
  thread_local const int done = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  (void)done;
}

class HostSleeper final : public Sleeper {
 public:
  double sleep(double seconds) const override {
    wake_punctually();
    timespec start{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &start);
    timespec until = start;
    const double whole = std::floor(seconds);
    until.tv_sec += static_cast<time_t>(whole);
    until.tv_nsec += std::lround((seconds - whole) * 1e9);
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return seconds_of(end) - seconds_of(start);
  }
};

}  // namespace

const Sleeper& host_sleeper() {
  static const HostSleeper sleeper;
  return sleeper;
}

double Pacer::spend(double seconds) {
  debt_s_ += seconds;
  return debt_s_ >= shortest_s_ ? sleep_debt() : 0;
}

double Pacer::settle() { return debt_s_ > 0 ? sleep_debt() : 0; }

void Pacer::forgive() { debt_s_ = std::max(debt_s_, -kMostCredit_s); }

void Pacer::set_shortest(double seconds) { shortest_s_ = seconds; }

double Pacer::sleep_debt() {
  const double slept_s = sleeper_.sleep(debt_s_);
  debt_s_ = std::max(debt_s_ - slept_s, -kMostCredit_s);
  return slept_s;
}

}  // namespace echelon::inline device
