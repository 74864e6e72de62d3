// SPDX-License-Identifier: Apache-2.0
// Runs protocols on random schedules, each drawn from a seed.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/support/random.hpp"

namespace echelon::test {

// Calls `run(seed)` for `count` seeds from test_seed() on. An exception fails the test case and names the seed.
template <class Run>
void run_schedules(std::uint64_t count, const Run& run) {
  for (std::uint64_t seed = test_seed(); seed < test_seed() + count; ++seed) {
    CAPTURE(seed);
    REQUIRE_NOTHROW(run(seed));
  }
}

}  // namespace echelon::test
