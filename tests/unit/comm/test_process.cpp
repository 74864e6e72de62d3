// SPDX-License-Identifier: Apache-2.0
// The harness that starts whole programs: it captures their output, and nothing outlives its limit.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/process.hpp"

using namespace echelon::test;

TEST_CASE("a process gives its exit code and both streams, however much it writes", "[process]") {
  const Outcome outcome = run_process({.argv = {"sh", "-c",
                                                "head -c 3000000 /dev/zero | tr '\\0' a; "
                                                "head -c 2000000 /dev/zero | tr '\\0' b >&2; exit 5"},
                                       .cwd = "",
                                       .env = {}});
  CHECK(outcome.code == 5);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.out == std::string(3000000, 'a'));
  CHECK(outcome.err == std::string(2000000, 'b'));
}

TEST_CASE("a process runs in its folder with its own environment", "[process]") {
  TempFolder folder;
  const Outcome outcome = run_process({.argv = {"sh", "-c", "pwd; echo $ECHELON_WORD; echo $HOME"},
                                       .cwd = folder.path(),
                                       .env = {{"ECHELON_WORD", "yes"}}});
  CHECK(outcome.out == std::filesystem::canonical(folder.path()).string() + "\nyes\n" + std::getenv("HOME") + "\n");
}

TEST_CASE("a signal counts as 128 plus its number, an unknown program is an error", "[process]") {
  CHECK(run_process({.argv = {"sh", "-c", "kill -9 $$"}, .cwd = "", .env = {}}).code == 137);
  CHECK_THROWS_WITH(run_process({.argv = {"no-such-program-here"}, .cwd = "", .env = {}}),
                    Catch::Contains("no-such-program-here"));
}

TEST_CASE("a process that passes its limit is ended with all that it started", "[process][slow]") {
  TempFolder folder;
  const Outcome outcome =
      run_process({.argv = {"sh", "-c",
                            "trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > pid; sleep 60') & "
                            "sleep 60; sleep 60"},
                   .cwd = folder.path(),
                   .env = {},
                   .limit_s = 0.5});
  CHECK(outcome.timed_out);
  CHECK(outcome.seconds < 50);
  pid_t pid = 0;
  std::ifstream(folder / "pid") >> pid;
  REQUIRE(pid > 0);
  std::error_code gone;  // an ended process has no executable any more, even before somebody has waited for it
  const auto executable = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
  INFO(executable.string());
  CHECK(gone);
}
