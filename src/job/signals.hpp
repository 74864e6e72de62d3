// Signals become requests that the loop polls once a step. Handlers only set flags.
//
//   USR1, USR2  finish the step, checkpoint, exit 75
//   TERM        the same, within kTermDeadline_s
//   INT         checkpoint, exit 130
//   a second TERM, or a second INT: ends at once with 143 or 130: by the watchdog where there is one, after it has
//               written status.json; else, and at a third signal, by _exit in the handler. A TERM within kTermApart_s
//               of the first is none: Slurm and srun may each send one. Nor is one that comes when this rank leaves:
//               srun --kill-on-bad-exit sends it to all others as soon as the first one has left with 75.
//   HUP         checkpoint and continue
//
// Compute threads never run a handler: oneDNN's generated matrix kernels use the stack pointer as an ordinary register,
// and the frame that a signal pushes there lands in the heap. The signals are blocked in the compute thread, and in all
// threads started from it afterwards, and unblocked in one thread that does nothing else.
//
// The end of the job counts as a USR1 before it (job_end.hpp). Each rank sees its own signals: ranks agree on them once
// a step (train/control).
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>

namespace echelon::inline job {

inline constexpr std::array kRequestSignals = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
inline constexpr double kTermDeadline_s = 20;  // Slurm kills 30 s after TERM
inline constexpr int kTermApart_s = 5;

// First thing in a program, which holds the signals back over the restart of prepare_process; then, where it will have
// a SignalWatch, they set their flags while MPI starts, so that a request of the first second is not lost and kills
// nothing. Verbs that have no handlers, or have set their own, release them.
void hold_signals();
void take_early_signals();
void release_signals();

// For as long as it lives, the signals above set flags. Made by the compute thread, after MPI is started (whose own
// helpers must not inherit the blocked signals) and before the engine and any other thread.
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
// Requests since the start; any thread, lock-free.
SignalWishes take_signal_wishes();

// How this run ends is decided: TERM changes nothing more, until a watchdog watches another run. Any thread.
void begin_to_leave();

// SIGTERM or SIGINT once it was received twice, else 0. Any thread.
int second_signal();
// Set by the watchdog: a thread polls `second_signal` and ends the process, so that the handler does not.
void watch_for_second_signals(bool watched);

// Seconds since the first TERM; 0 where none came. Any thread.
double since_term_s();

}  // namespace echelon::inline job
