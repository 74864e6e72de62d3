// One ring of tests: runs Catch2 over everything that is linked in and closes with "<ring>: N passed, N failed, N
// skipped".
#pragma once

#include <functional>
#include <string>

namespace echelon::test {

// Returns the exit code: 0 when nothing failed and at least one test ran. Cases are counted as whole test cases; the
// closing line also goes to the file that ECHELON_TEST_SUMMARY names, appended; a line per test case (seconds on the
// clock, seconds of CPU time with child processes, name, separated by tabs) to the file that ECHELON_TEST_TIMES names.
int run_session(int argc, char** argv, const char* ring, bool reports = true);

// Called at the end of every test case with what this process found; what it returns counts. The ring under MPI has all
// ranks agree here.
void set_agreement(std::function<bool(const std::string& test, bool passed)> agree);

}  // namespace echelon::test
