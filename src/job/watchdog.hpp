// A thread that ends the job when a wait takes too long or a rank was lost. It makes no transport call and waits for no
// other thread.
//
// It reads the engine's waits and the phase board. A wait older than `hang_timeout_s` is written to the log and to
// status.json (rank, host, peer, channel, since, step, phase), then the process ends by _exit(7); the launcher ends the
// other ranks. It ends likewise when the process of another rank on this host no longer exists: a launcher kills the
// others about a second after it detects this. A rank that received TERM and did not stop within its deadline ends by
// _exit(143), and one that received a second TERM or INT at once (signals.hpp). A lost rank of another host is found by
// the timeout of the ranks that wait for it. Of a run that goes on without lost workers, crew.hpp finds them instead.
// Time in which this process did not run (`scontrol suspend`, SIGSTOP) is no part of a wait: the thread knows it by its
// own ticks.
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
  double look_every_s = 0.2;        // interval of checks: each reads waits and calls kill(pid, 0) for each of `others`
  std::vector<WatchedRank> others;  // of this host
  // Records exit code and reason in status.json; exceptions are logged and dropped. False where another rank has
  // already recorded the end of the attempt.
  std::function<bool(int exit_code, const std::string& reason)> record_exit;
  // Records the observation of this rank (rank-NNNN.err), likewise.
  std::function<void(const std::string& reason)> record_rank_error;
  // Called at every look. Must not throw or block for long.
  std::function<void()> look;
  // Called before the process ends: what this rank still leaves. `lost`: rank whose process is gone, -1: none is known;
  // `first`: this rank has recorded the end. Must not throw.
  std::function<void(const std::string& reason, int lost, bool first)> leave;
  // Ends the process; tests replace it. Default: _exit.
  std::function<void(int exit_code)> end;
};

// When this process stood still, as far as its ticks tell.
class Standstill {
 public:
  explicit Standstill(double tick_s) : tick_s_(tick_s) {}
  // The thread was to tick every tick_s; of more than a second above it the whole process stood still.
  void tick(double now_s);
  double seconds_since(double s) const;

 private:
  struct Stop {
    double until_s, seconds;
  };
  double tick_s_, last_s_ = -1;
  std::vector<Stop> stops_;
};

// Description of the oldest wait that is older than `timeout_s`, or of a wait for data; "" where there is none. A wait
// is no older than the newest step that this rank has heard of: it may be for a rank that is slow. A rank in phase
// kStandBy never hangs.
std::string hang_text(const std::vector<WaitView>& waits, const Transport& transport, const PhaseBoard& phase,
                      double timeout_s, const Standstill& standstill);

class Watchdog {
 public:
  // Starts the thread; engine and phase outlive it. The destructor joins it, within one check.
  Watchdog(const Engine& engine, const PhaseBoard& phase, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline job
