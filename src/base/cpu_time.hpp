// Processor seconds of this process, of all its threads: of the whole process, or of the newest run of a process that
// makes several, one after another. Nothing throws.
#pragma once

namespace echelon::inline base {

// A run begins. By one thread, while no run is under way.
void begin_cpu_time();

// In user and system mode, since the newest begin_cpu_time, or since the process began where there was none. Any
// thread.
double cpu_seconds();

}  // namespace echelon::inline base
