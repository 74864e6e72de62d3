// SPDX-License-Identifier: Apache-2.0
// The end of a process whose run has ended: MPI has to be closed, and the process to exit. The launcher returns once
// all processes have.
//
// A process that is stopped (SIGSTOP) in that time, even after the other ranks have left, is continued by a child of
// its own, which waits for the end of this process on a pipe. The child is a shell with `timeout` and `cat`; where one
// of them is missing the process has no such child.
#pragma once

#include <string>

namespace echelon::inline job {

// Time that closing may take, in seconds, before others give up: at most half of run.hang_timeout_s, by which other
// ranks may still wait.
double closing_limit_s(double hang_timeout_s);

// This process's run has ended with `exit_code`, and `attempt`, a folder, has its status ("": it has none). From now on
// job/launch_watch.hpp limits each stretch to closing_limit_s, and the child continues this process if it is stopped
// for two thirds of that. Later calls have no effect. Called by the compute thread.
void begin_closing(int exit_code, const std::string& attempt, double hang_timeout_s);

// "" before begin_closing; then "; the run was complete", or "; the run had ended before, with exit code 75". Any
// thread.
std::string closing_note();

// A rank does not come, for the reason `why`, and this process is going to end by _exit. Returns its exit code: that of
// the run, or 7 if that is 0, because launchers take an early end with 0 for an error of their own; the attempt's
// status then has 7 too, and says that the run is complete. Returns 7 before begin_closing. Any thread.
int give_up_closing(const std::string& why);

}  // namespace echelon::inline job
