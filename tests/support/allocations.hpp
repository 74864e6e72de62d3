// SPDX-License-Identifier: Apache-2.0
// Counts how often this thread asks for memory, for tests that a path allocates nothing.
#pragma once

#include <cstdint>

namespace echelon::test {

// Returns the calls of operator new by this thread so far.
std::uint64_t allocations();
// Returns those of them that oneDNN's shared library made; its execute call allocates, which tests must discount.
std::uint64_t allocations_of_onednn();

}  // namespace echelon::test
