// A thread that makes no transport call and ends the job when a wait has gone on for too long or a rank is gone.
//
// It reads the engine's waits and the phase board. A wait older than `hang_timeout_s` is written to the log and to
// status.json (rank, host, peer, channel, since, step, phase), then the process ends by _exit(7); the launcher ends the
// other ranks. It ends likewise when the process of another rank on this host no longer exists: a launcher that notices
// the same leaves the others about a second before it kills them. A rank that was sent TERM and could not stop by
// itself within its deadline ends by _exit(143), and one that was sent a second TERM or INT at once (signals.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "job/phase.hpp"

namespace echelon::inline job {

struct WatchedRank {
  int rank = 0;
  std::string process;  // base/process.hpp
};

struct WatchdogOptions {
  double hang_timeout_s = 300;
  double term_deadline_s = 20;
  double look_every_s = 0.2;
  std::vector<WatchedRank> others;  // of this host
  // Leaves the exit code and the reason in status.json; what it throws is dropped. False where another rank has
  // already told how the attempt ended.
  std::function<bool(int exit_code, const std::string& reason)> record_exit;
  // Leaves what this rank alone has seen (rank-NNNN.err), likewise.
  std::function<void(const std::string& reason)> record_rank_error;
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

}  // namespace echelon::inline job
