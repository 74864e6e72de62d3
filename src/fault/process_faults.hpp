// SPDX-License-Identifier: Apache-2.0
// Faults that a process inflicts on itself.
#pragma once

namespace echelon::inline fault {

[[noreturn]] void kill_this_process();  // SIGKILL
// Sends SIGSTOP; a child process continues it after this time (0: never). Returns once the process continues.
void stop_this_process(double seconds);

}  // namespace echelon::inline fault
