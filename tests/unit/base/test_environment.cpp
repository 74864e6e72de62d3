// SPDX-License-Identifier: Apache-2.0
// Numbers of the environment are read whole, or refused by name.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/environment.hpp"
#include "base/error.hpp"

namespace echelon {
namespace {

constexpr const char* kName = "ECHELON_OF_THIS_TEST";

TEST_CASE("a number of the environment is whole or refused by name", "[base]") {
  ::unsetenv(kName);
  CHECK_FALSE(whole_in_environment(kName, "tasks", 1, 8));
  ::setenv(kName, "", 1);
  CHECK_FALSE(whole_in_environment(kName, "tasks", 1, 8));
  CHECK_FALSE(positive_in_environment(kName, "seconds"));
  ::setenv(kName, "8", 1);
  CHECK(whole_in_environment(kName, "tasks", 1, 8) == 8);
  ::setenv(kName, "0.5", 1);
  CHECK(positive_in_environment(kName, "seconds") == 0.5);
  for (const char* wrong : {"9", "0", "4x", " 4", "4 ", "0x4", "4.0", "four", "99999999999999999999"}) {
    ::setenv(kName, wrong, 1);
    CHECK_THROWS_WITH(whole_in_environment(kName, "tasks", 1, 8),
                      std::string(kName) + "=" + wrong + ": not a whole number of tasks from 1 to 8");
  }
  for (const char* wrong : {"0", "-1", "nan", "inf", "1s", "1,5"}) {
    ::setenv(kName, wrong, 1);
    CHECK_THROWS_AS(positive_in_environment(kName, "seconds"), ConfigError);
  }
  ::unsetenv(kName);
}

}  // namespace
}  // namespace echelon
