// The peak of this process's resident memory: of the whole process, or of the newest run of a process that makes
// several, one after another. Linux alone: /proc/self. Nothing throws.
#pragma once

namespace echelon::inline base {

inline constexpr const char* kClearRefs = "/proc/self/clear_refs";

// A run begins: freed memory that the allocator holds goes back to the system, and the peak begins anew at what is
// resident now. Where the kernel refuses that (`clear_refs` cannot be written), the first run keeps the peak of the
// process, and the peak of a later one is unknown. By one thread, while no run is under way.
void begin_peak_memory(const char* clear_refs = kClearRefs);

// MiB, since the newest begin_peak_memory, or since the program was executed where there was none. NaN: unknown. Reads
// a file of 2 KiB. Any thread.
double peak_memory_mb();

}  // namespace echelon::inline base
