// SPDX-License-Identifier: Apache-2.0
// When the scheduler ends this process's job: ECHELON_JOB_END_TIME, else SLURM_JOB_END_TIME (seconds since 1970). In a
// Slurm job without either, the first rank asks Slurm's controller once, because Slurm sets the variable only from
// 23.02 on. The job's end acts like a USR1 run.stop_before_end_s before it. Ranks agree on it once per step
// (train/control), so it is enough that one of them knows it.
#pragma once

#include <string>

namespace echelon::inline job {

// Called once, before MPI starts (a process with MPI should not start others). If it is up to the first rank, it asks
// for the end, for 5 s at most, and after an answer for KillWait, equally long. Problems are kept for
// require_job_end.
void find_job_end();

// Throws ConfigError if ECHELON_JOB_END_TIME is not such a time or has passed: the run would stop after one step, and
// again after each start.
void require_job_end();

// Returns a log line about an end that is near or could not be determined, at the first call only; else "".
std::string job_end_note(double stop_before_end_s);

// Seconds until the scheduler ends the job, negative after its end; infinity if it is not known.
double left_of_job_s();

// Seconds after a TERM at which a rank ends by itself, so that it can report this: 2/3 of Slurm's KillWait (the time
// from TERM to KILL), at most kTermDeadline_s. If the first rank asks the controller for the end, it asks for this too;
// other ranks assume the usual 30 s.
double term_deadline_s();

// True in the last `margin_s` seconds of a job, but at most in the second half of what was left of it when this process
// began, so that short jobs make progress too; and after its end. False if `margin_s` is 0 or the end is unknown.
bool job_end_is_near(double margin_s);

}  // namespace echelon::inline job
