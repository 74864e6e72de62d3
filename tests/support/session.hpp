// SPDX-License-Identifier: Apache-2.0
// Runs one ring of tests: Catch2 over everything that is linked in, closed with the line "<ring>: N passed, N failed, N
// skipped".
#pragma once

#include <functional>
#include <string>

namespace echelon::test {

// Returns the exit code: 0 when nothing failed and at least one test ran. Counts whole test cases. Appends the closing
// line to the file that ECHELON_TEST_SUMMARY names, and a line per test case (seconds on the clock, seconds of CPU time
// with child processes, name; separated by tabs) to the file that ECHELON_TEST_TIMES names.
int run_session(int argc, char** argv, const char* ring, bool reports = true);

// `agree` is called at the end of every test case with this process's verdict, and its result counts. The ring under
// MPI uses it to make all ranks agree.
void set_agreement(std::function<bool(const std::string& test, bool passed)> agree);

}  // namespace echelon::test
