// How often a thread asks for heap memory by operator new, and for how many bytes: beside times, which vary, a measure
// of a step that does not.
//
// `echelon` counts (cli/counted_new.cpp): two additions a call. Tests and sanitised builds, which have an operator new
// of their own, do not. What libraries take with malloc is not counted.
#pragma once

#include <cstdint>

namespace echelon::inline base {

struct AllocationCount {
  std::uint64_t calls = 0, bytes = 0;
  AllocationCount operator-(const AllocationCount& before) const {
    return {calls - before.calls, bytes - before.bytes};
  }
};
inline constinit thread_local AllocationCount allocation_count;  // of this thread so far
// What this thread has got from operator new so far, less what it has given back, as the allocator rounds it. Tests
// count it too.
inline constinit thread_local std::int64_t held_bytes = 0;

// Whether this program counts.
bool counts_allocations();

}  // namespace echelon::inline base
