// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>

namespace echelon::test {

// Returns the factor by which limits of time are stretched: ECHELON_TEST_PATIENCE, which run_tests.sh sets for
// sanitised builds, or 1.
inline double patience() {
  const char* given = std::getenv("ECHELON_TEST_PATIENCE");
  return given == nullptr ? 1 : std::max(1.0, std::strtod(given, nullptr));
}

}  // namespace echelon::test
