// Skips, aloud and counted. Catch2 2.13 has none of its own:
//
//   if (test::skip_without(has_peer_data, "needs ../shared/data")) return;
#pragma once

#include <string>

namespace echelon::test {

// Where `present` is false: prints the reason, counts the test case as skipped, returns true.
bool skip_without(bool present, const std::string& reason);

}  // namespace echelon::test
