// SPDX-License-Identifier: Apache-2.0
// Output whose reader is gone, and output that cannot be written.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

TEST_CASE("a reader that goes ends nothing; a device that is full is an error", "[run]") {
  const test::Trial trial;
  const auto shell = [&](const std::string& end) {
    return test::run_process({.argv = {"bash", "-c", "'" + test::echelon_binary() + "' check --keys " + end}});
  };
  const test::Outcome left = shell("| head -1; exit ${PIPESTATUS[0]}");
  CHECK(left.code == kExitOk);
  CHECK(left.err.empty());
  const test::Outcome full = shell("> /dev/full");
  CHECK(full.code == kExitEnvironment);
  CHECK_THAT(full.err, Contains("standard output cannot be written"));
}

}  // namespace
}  // namespace echelon
