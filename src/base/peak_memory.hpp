// SPDX-License-Identifier: Apache-2.0
// The peak of this process's resident memory: since it began, or since the newest run began in a process that makes
// several runs in turn. Linux only: /proc/self. Nothing throws.
#pragma once

namespace echelon::inline base {

inline constexpr const char* kClearRefs = "/proc/self/clear_refs";

// Marks the beginning of a run: returns freed memory that the allocator holds to the system, and resets the peak to the
// memory resident now. If the kernel refuses the reset (`clear_refs` cannot be written), the first run keeps the peak
// of the process, and that of a later run is unknown. Called by one thread, while no run is in progress.
void begin_peak_memory(const char* clear_refs = kClearRefs);

// Returns the peak in MiB since the last begin_peak_memory or, without one, since the program was executed. NaN:
// unknown. Reads a file of 2 KiB. Callable from any thread.
double peak_memory_mb();

}  // namespace echelon::inline base
