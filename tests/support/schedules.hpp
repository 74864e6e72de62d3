// Protocols on random schedules, each drawn from a seed.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/support/random.hpp"

namespace echelon::test {

// `run(seed)` for so many seeds from test_seed() on. What one of them throws fails the test case, with its seed.
template <class Run>
void run_schedules(std::uint64_t count, const Run& run) {
  for (std::uint64_t seed = test_seed(); seed < test_seed() + count; ++seed) {
    CAPTURE(seed);
    REQUIRE_NOTHROW(run(seed));
  }
}

}  // namespace echelon::test
