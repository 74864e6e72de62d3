// SPDX-License-Identifier: Apache-2.0
// Turns signals into requests that the loop polls once per step. Handlers only set flags.
//
//   USR1, USR2  finish the step, checkpoint, exit 75
//   TERM        the same, within kTermDeadline_s
//   INT         checkpoint, exit 130
//   a second TERM, or a second INT: ends at once with 143 or 130: by the watchdog if there is one, after it has written
//               status.json; otherwise, and at a third signal, by _exit in the handler. A TERM within kTermApart_s of
//               the first does not count: Slurm and srun may each send one. Nor does one while this rank leaves:
//               srun --kill-on-bad-exit sends it to all others as soon as the first one has left with 75.
//   HUP         checkpoint and continue
//
// Compute threads never run a handler: oneDNN's generated matrix kernels use the stack pointer as an ordinary register,
// so the frame that a signal pushes would overwrite the heap. The signals are blocked in the compute thread, and in all
// threads started from it afterwards, and unblocked in one thread that does nothing else.
//
// The end of the job acts like an earlier USR1 (job_end.hpp). Each rank sees its own signals; ranks agree on them once
// per step (train/control).
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>

namespace echelon::inline job {

inline constexpr std::array kRequestSignals = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
inline constexpr double kTermDeadline_s = 20;  // Slurm kills 30 s after TERM
inline constexpr int kTermApart_s = 5;

// hold_signals comes first in a program, so that signals are held back during the restart of prepare_process.
// take_early_signals: for verbs that will have a SignalWatch; signals set their flags while MPI starts, so that an
// early request is not lost and kills nothing. release_signals: for verbs without handlers, or with their own.
void hold_signals();
void take_early_signals();
void release_signals();

// During its lifetime the signals above set flags. Created by the compute thread after MPI has started (whose helper
// threads must not inherit the blocked signals), and before the engine and any other thread.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

struct SignalWishes {
  bool requeue = false;     // USR1, USR2, TERM
  bool interrupt = false;   // INT
  bool checkpoint = false;  // HUP; cleared by the call
};
// Returns the requests since the start. Any thread, lock-free.
SignalWishes take_signal_wishes();

// The outcome of this run is decided: TERM has no further effect until a watchdog watches another run. Any thread.
void begin_to_leave();

// Returns SIGTERM or SIGINT if it was received twice, else 0. Any thread.
int second_signal();
// Called by the watchdog: its thread polls `second_signal` and ends the process, so that the handler does not.
void watch_for_second_signals(bool watched);

// Seconds since the first TERM; 0 if there was none. Any thread.
double since_term_s();

}  // namespace echelon::inline job
