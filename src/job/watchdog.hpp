// SPDX-License-Identifier: Apache-2.0
// A thread that ends the job if a wait takes too long or a rank was lost. It makes no transport call and waits for no
// other thread.
//
// It reads the engine's waits and the phase board. A wait older than `hang_timeout_s` is written to the log and to
// status.json (rank, host, peer, channel, since, step, phase); then the process ends by _exit(7), and the launcher ends
// the other ranks. It does the same if the process of another rank on this host no longer exists; a launcher kills the
// others about a second later. A rank that received TERM and did not stop within its deadline ends by _exit(143); one
// that received a second TERM or INT ends at once (signals.hpp). A lost rank of another host is found by the timeout of
// ranks that wait for it. In runs that continue without lost workers, crew.hpp finds them instead. Time during which
// this process did not run (`scontrol suspend`, SIGSTOP) is not part of a wait: the thread detects it by its own ticks.
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
  std::vector<WatchedRank> others;  // ranks of this host
  // Records exit code and reason in status.json; exceptions are logged and dropped. Returns false if another rank has
  // already recorded the end of the attempt.
  std::function<bool(int exit_code, const std::string& reason)> record_exit;
  // Records the observation of this rank (rank-NNNN.err); exceptions are logged and dropped.
  std::function<void(const std::string& reason)> record_rank_error;
  // Called at every check. Must not throw or block for long.
  std::function<void()> look;
  // Called before the process ends, to write what this rank leaves. `lost`: rank whose process is gone, -1: none known.
  // `first`: this rank has recorded the end. Must not throw.
  std::function<void(const std::string& reason, int lost, bool first)> leave;
  // Ends the process; replaced in tests. Default: _exit.
  std::function<void(int exit_code)> end;
};

// Detects when this process stood still, by missing ticks.
class Standstill {
 public:
  explicit Standstill(double tick_s) : tick_s_(tick_s) {}
  // The thread should tick every tick_s. If a tick is more than a second late, the whole process stood still.
  void tick(double now_s);
  double seconds_since(double s) const;

 private:
  struct Stop {
    double until_s, seconds;
  };
  double tick_s_, last_s_ = -1;
  std::vector<Stop> stops_;
};

// Describes the oldest wait that is older than `timeout_s`, or a wait for data; "" if there is none. A wait counts as
// no older than the newest step that this rank has heard of, because it may be for a slow rank. A rank in phase
// kStandBy never hangs.
std::string hang_text(const std::vector<WaitView>& waits, const Transport& transport, const PhaseBoard& phase,
                      double timeout_s, const Standstill& standstill);

class Watchdog {
 public:
  // Starts the thread; engine and phase must outlive it. The destructor joins it within one check.
  Watchdog(const Engine& engine, const PhaseBoard& phase, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline job
