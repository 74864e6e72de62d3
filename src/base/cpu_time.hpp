// SPDX-License-Identifier: Apache-2.0
// Processor seconds of all threads of this process: since it began, or since the newest run began in a process that
// makes several runs in turn. Nothing throws.
#pragma once

namespace echelon::inline base {

// Marks the beginning of a run. Called by one thread, while no run is in progress.
void begin_cpu_time();

// Returns the seconds in user and system mode since the last begin_cpu_time or, without one, since the process began.
// Callable from any thread.
double cpu_seconds();

}  // namespace echelon::inline base
