// SPDX-License-Identifier: Apache-2.0
#include "job/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>

namespace echelon::inline job {
namespace {

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free, "handlers write these");

std::atomic<int> usr{0};
std::atomic<int> term{0};
std::atomic<int> interrupted{0};
std::atomic<int> hang_up{0};
std::atomic<int> second{0};  // the signal that came twice
std::atomic<bool> second_is_watched{false};
std::atomic<bool> leaves{false};
std::atomic<int> term_at{0};  // low bits of the clock's seconds; differences suffice

int clock_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe
  return static_cast<int>(now.tv_sec & 0x3fffffff);
}

void end_at_once(int signal) {
  if (second || !second_is_watched) _exit(128 + signal);
  second = signal;
}

void on_signal(int signal) {
  switch (signal) {
    case SIGUSR1:
    case SIGUSR2: usr = 1; break;
    case SIGTERM:
      if (term && (leaves || clock_seconds() - term_at < kTermApart_s)) return;
      if (term) return end_at_once(signal);
      term_at = clock_seconds();
      term = 1;
      break;
    case SIGINT:
      if (interrupted) return end_at_once(signal);
      interrupted = 1;
      break;
    case SIGHUP: hang_up = 1; break;
    default: break;
  }
}

sigset_t our_signals() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : kRequestSignals) sigaddset(&ours, signal);
  return ours;
}

using Actions = std::array<struct sigaction, kRequestSignals.size()>;

void set_handlers(Actions* before) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  action.sa_mask = our_signals();
  for (std::size_t i = 0; i < kRequestSignals.size(); ++i)
    sigaction(kRequestSignals[i], &action, before ? &(*before)[i] : nullptr);
}

}  // namespace

void hold_signals() {
  const sigset_t ours = our_signals();
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
}

void take_early_signals() {
  set_handlers(nullptr);
  release_signals();
}

void release_signals() {
  const sigset_t ours = our_signals();
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

struct SignalWatch::Body {
  Body() {
    const sigset_t ours = our_signals();
    set_handlers(&before_);
    pthread_sigmask(SIG_BLOCK, &ours, &mask_before_);
    thread_ = std::thread([this, ours] {
      pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_; });
    });
  }

  ~Body() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
    for (std::size_t i = 0; i < kRequestSignals.size(); ++i) sigaction(kRequestSignals[i], &before_[i], nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  Actions before_{};
  sigset_t mask_before_{};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

SignalWatch::SignalWatch() : body_(std::make_unique<Body>()) {}
SignalWatch::~SignalWatch() = default;

SignalWishes take_signal_wishes() {
  SignalWishes wishes;
  wishes.interrupt = interrupted != 0;
  wishes.requeue = usr != 0 || term != 0;
  wishes.checkpoint = hang_up.exchange(0) != 0;
  return wishes;
}

void begin_to_leave() { leaves = true; }

int second_signal() { return second; }
void watch_for_second_signals(bool watched) {
  if (watched) leaves = false;
  second_is_watched = watched;
}

double since_term_s() { return term ? static_cast<double>(clock_seconds() - term_at) : 0.0; }

}  // namespace echelon::inline job
