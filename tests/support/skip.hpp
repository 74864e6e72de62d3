// Skips, aloud and counted. Catch2 2.13 has none of its own:
//
//   if (test::skip_without(can_draw(), Lacks::package, "needs gnuplot")) return;
#pragma once

#include <string>

namespace echelon::test {

// What a machine lacks for a test, as the closing lines of tests/tools/run_tests.sh name it: where ECHELON_TEST_SKIPS
// names kinds, a skip of any other kind fails the run. `package` is installed by `make test`; `build`: how this was
// compiled.
enum class Lacks { gpu, processor, data, package, right, memory, build, setting };

// Where `present` is false: prints the reason, counts the test case as skipped, returns true.
bool skip_without(bool present, Lacks what, const std::string& reason);

}  // namespace echelon::test
