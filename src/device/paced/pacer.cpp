#include "device/paced/pacer.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace echelon::inline device {
namespace {

// Shorter sleeps cost more in system calls than they last.
constexpr double kShortestSleep_s = 20e-6;
// Of a longer delay (a stopped process) the rest is not made good: ops would run for nothing until it was.
constexpr double kMostCredit_s = 5e-3;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// By default Linux lets a thread's timers expire 50 us late.
void wake_punctually() {
  thread_local const int done = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  (void)done;
}

}  // namespace

void Pacer::spend(double seconds) {
  debt_s_ += seconds;
  if (debt_s_ >= kShortestSleep_s) sleep_debt();
}

void Pacer::settle() {
  if (debt_s_ > 0) sleep_debt();
}

void Pacer::sleep_debt() {
  wake_punctually();
  timespec start{}, end{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  timespec until = start;
  const double whole = std::floor(debt_s_);
  until.tv_sec += static_cast<time_t>(whole);
  until.tv_nsec += std::lround((debt_s_ - whole) * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  debt_s_ = std::max(debt_s_ - (seconds_of(end) - seconds_of(start)), -kMostCredit_s);
}

}  // namespace echelon::inline device
