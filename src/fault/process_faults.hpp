// What a process does to itself.
#pragma once

namespace echelon::inline fault {

[[noreturn]] void kill_this_process();  // SIGKILL
// SIGSTOP; a child process continues it after this time, 0: never. Returns once it goes on.
void stop_this_process(double seconds);

}  // namespace echelon::inline fault
