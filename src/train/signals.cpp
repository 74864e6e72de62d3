#include "train/signals.hpp"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include <unistd.h>

namespace echelon {
namespace {

volatile std::sig_atomic_t usr = 0;
volatile std::sig_atomic_t term = 0;
volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t hang_up = 0;
volatile std::sig_atomic_t term_at = 0;  // low bits of the clock's seconds, enough for differences

std::sig_atomic_t clock_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe
  return static_cast<std::sig_atomic_t>(now.tv_sec & 0x3fffffff);
}

void on_signal(int signal) {
  switch (signal) {
    case SIGUSR1:
    case SIGUSR2: usr = 1; break;
    case SIGTERM:
      if (term) _exit(128 + SIGTERM);
      term_at = clock_seconds();
      term = 1;
      break;
    case SIGINT:
      if (interrupted) _exit(128 + SIGINT);
      interrupted = 1;
      break;
    case SIGHUP: hang_up = 1; break;
    default: break;
  }
}

// Seconds since 1970 at which Slurm ends the job; 0 where it is not known.
double slurm_end_s() {
  static const double end = [] {
    const char* text = std::getenv("SLURM_JOB_END_TIME");
    return text ? std::atof(text) : 0.0;
  }();
  return end;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

SignalWishes take_signal_wishes() {
  SignalWishes wishes;
  wishes.interrupt = interrupted != 0;
  wishes.requeue = usr != 0 || term != 0;
  if (slurm_end_s() > 0 && static_cast<double>(std::time(nullptr)) > slurm_end_s() - kSlurmMargin_s)
    wishes.requeue = true;
  wishes.checkpoint = hang_up != 0;
  hang_up = 0;
  return wishes;
}

double since_term_s() { return term ? static_cast<double>(clock_seconds() - term_at) : 0.0; }

}  // namespace echelon
