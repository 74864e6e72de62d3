// SPDX-License-Identifier: Apache-2.0
// Skips tests with a printed reason, and counts them. Catch2 2.13 has no skips of its own:
//
//   if (test::skip_without(can_draw(), Lacks::package, "needs gnuplot")) return;
#pragma once

#include <string>

namespace echelon::test {

// Things that a machine may lack for a test, named as in the closing lines of tests/tools/run_tests.sh. If
// ECHELON_TEST_SKIPS lists kinds, a skip of any other kind fails the run. `package`: something that `make test`
// installs; `build`: the way this program was compiled.
enum class Lacks { gpu, processor, data, package, right, memory, build, setting };

// If `present` is false, prints the reason, counts the test case as skipped and returns true.
bool skip_without(bool present, Lacks what, const std::string& reason);

}  // namespace echelon::test
