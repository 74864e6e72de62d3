// When the scheduler ends this process's job: ECHELON_JOB_END_TIME, else SLURM_JOB_END_TIME (seconds since 1970), else,
// in a job of Slurm, what its controller says, which the first rank asks once: Slurm sets no such variable
// before 23.02. That end counts as a USR1 run.stop_before_end_s before it. Ranks agree on it once a step
// (train/control), so that it is enough that one of them knows it.
#pragma once

#include <string>

namespace echelon::inline job {

// Called once, before MPI starts (a process of MPI had better start no other one): asks for the end where it is the
// first rank's to ask, for 5 s at most, and for KillWait as long where it answers. What is wrong is kept for
// require_job_end.
void find_job_end();

// ConfigError where ECHELON_JOB_END_TIME is no such time or has passed: the run would stop after one step, and stop
// again each time that it is started.
void require_job_end();

// A line for the log about an end that is near or could not be found, the first time that it is asked for; else "".
std::string job_end_note(double stop_before_end_s);

// Seconds until the scheduler ends the job, negative after its end; infinity where it is not known.
double left_of_job_s();

// Seconds from a TERM by which a rank ends by itself, so that it can say so: 2/3 of Slurm's KillWait, after which KILL
// follows TERM, at most kTermDeadline_s. The first rank asks the controller where it asks for the end; others take the
// usual 30 s for it.
double term_deadline_s();

// True in the last `margin_s` seconds of a job, but of no more than half of what was left of it when this process
// began, so that short jobs, too, get on; and after its end. False where `margin_s` is 0 or the end unknown.
bool job_end_is_near(double margin_s);

}  // namespace echelon::inline job
