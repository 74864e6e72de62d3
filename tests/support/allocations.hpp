// How often this thread has asked for memory: for tests that a path allocates nothing.
#pragma once

#include <cstdint>

namespace echelon::test {

// Calls of operator new by this thread so far.
std::uint64_t allocations();

}  // namespace echelon::test
