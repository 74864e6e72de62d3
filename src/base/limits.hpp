// SPDX-License-Identifier: Apache-2.0
// Limits of the operating system on this process (ulimit, control groups), detected before they end a run half way.
#pragma once

#include <string>

namespace echelon::inline base {

// Called before MPI and OpenMP start, because their libraries exit with 1 or crash when they hit a limit. Raises the
// soft limits of open files and of the stack as far as possible, turns a write beyond `ulimit -f` into an error instead
// of a signal, and tries out what a rank needs besides its model: `threads` more threads, 512 MiB of address space, 64
// open files, 256 KiB of stack, files of 8 MiB. Throws EnvironmentError with the limit; for a limit on memory, an Error
// with kExitMemory.
void require_limits(int threads);

// "; limits: ulimit -v 300000, pids.max 20": the limits that are set; "" if there are none.
std::string limits_of_process_text();
// The message if the system cannot start a thread.
std::string no_thread_text();

}  // namespace echelon::inline base
