// SPDX-License-Identifier: Apache-2.0
// Counts how often a thread allocates heap memory by operator new, and how many bytes. Unlike times, these counts of a
// step do not vary.
//
// `echelon` counts (cli/counted_new.cpp), at the cost of two additions per call. Tests and sanitised builds, which have
// their own operator new, do not. Memory that libraries allocate with malloc is not counted.
#pragma once

#include <cstdint>

namespace echelon::inline base {

struct AllocationCount {
  std::uint64_t calls = 0, bytes = 0;
  AllocationCount operator-(const AllocationCount& before) const {
    return {calls - before.calls, bytes - before.bytes};
  }
};
inline constinit thread_local AllocationCount allocation_count;  // calls and bytes of this thread so far
// Bytes that this thread has got from operator new so far, less those it has freed, as rounded by the allocator.
// Counted in tests too.
inline constinit thread_local std::int64_t held_bytes = 0;

// Whether this program counts.
bool counts_allocations();

}  // namespace echelon::inline base
