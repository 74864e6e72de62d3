// Limits of the operating system on this process (ulimit, control groups), before they end it in the midst of a run.
#pragma once

#include <string>

namespace echelon::inline base {

// Before MPI and OpenMP start, whose libraries end the process with 1 or crash where they meet a limit. Raises the soft
// limits of open files and of the stack as far as they go, makes a write beyond `ulimit -f` an error instead of a
// signal, and tries what a rank needs beside its model: `threads` more threads, 512 MiB of address space, 64 open
// files, 256 KiB of stack, files of 8 MiB. EnvironmentError with the limit; where it is one of memory, an Error of
// kExitMemory.
void require_limits(int threads);

// "; limits: ulimit -v 300000, pids.max 20": those that are set, "" for none.
std::string limits_of_process_text();
// For a thread that the system does not start.
std::string no_thread_text();

}  // namespace echelon::inline base
