// Signals become wishes that the loop asks for once a step. Handlers only set flags.
//
//   USR1, USR2  finish the step, checkpoint, exit 75     TERM  the same, within kTermDeadline_s; a second one ends at
//   once INT         checkpoint, exit 130                     HUP   checkpoint and go on
//
// Slurm's end of the job (SLURM_JOB_END_TIME, seconds since 1970) counts as a USR1 that comes kSlurmMargin_s earlier.
#pragma once

#include <cstdint>

namespace echelon {

inline constexpr double kTermDeadline_s = 20;  // Slurm kills 30 s after TERM
inline constexpr double kSlurmMargin_s = 60;

void install_signal_handlers();

struct SignalWishes {
  bool requeue = false;     // USR1, USR2, TERM, or the job's end is near
  bool interrupt = false;   // INT
  bool checkpoint = false;  // HUP; asking clears it
};
SignalWishes take_signal_wishes();

// Seconds since the first TERM; 0 where none came. Any thread.
double since_term_s();

}  // namespace echelon
