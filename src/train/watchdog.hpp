// A thread that makes no transport call and ends the job when a wait has gone on for too long.
//
// It reads the engine's waits and the phase board. A wait older than `hang_timeout_s` is written to the log and to
// status.json (rank, host, peer, channel, since, step, phase), then the process ends by _exit(7); the launcher ends the
// other ranks. It also ends a rank that was sent TERM and could not stop by itself within its deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/engine.hpp"
#include "train/phase.hpp"

namespace echelon {

struct WatchdogOptions {
  double hang_timeout_s = 300;
  double term_deadline_s = 20;
  double look_every_s = 0.2;
  // Leaves a last word (status.json) with the exit code and reason; what it throws is dropped.
  std::function<void(int exit_code, const std::string& reason)> last_word;
  // Ends the process; tests put something else here. Default: _exit.
  std::function<void(int exit_code)> end;
};

// What hangs, in words: the oldest wait that is older than `timeout_s`, or "" where none is.
std::string hang_text(const std::vector<WaitView>& waits, const Transport& transport, const PhaseBoard& phase,
                      double timeout_s);

class Watchdog {
 public:
  // Both outlive it.
  Watchdog(const Engine& engine, const PhaseBoard& phase, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon
