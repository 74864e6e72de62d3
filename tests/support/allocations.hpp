// How often this thread has asked for memory: for tests that a path allocates nothing.
#pragma once

#include <cstdint>

namespace echelon::test {

// Calls of operator new by this thread so far.
std::uint64_t allocations();
// Those of them that code of oneDNN's shared library made; its execute call allocates, which is its own affair.
std::uint64_t allocations_of_onednn();

}  // namespace echelon::test
