// SPDX-License-Identifier: Apache-2.0
// Limits of the operating system, sizes that no machine has, and readers that disappear.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;
using test::Trial;

// Runs `before; echelon train trial.toml behind` in a shell.
Outcome train_in_shell(const Trial& trial, const std::string& before, const std::string& behind) {
  const std::string command = fmt::format("{} {} train trial.toml {}", before, test::echelon_binary(), behind);
  return test::run_process({.argv = {"bash", "-c", command}, .cwd = trial / "", .env = {}, .limit_s = 60});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers reserve terabytes of address space
TEST_CASE("a limit of the operating system ends a run before it begins, by name", "[run][limits]") {
  struct Case {
    std::string limit;
    int code;
    std::string name;
  };
  const Trial trial;
  for (const auto& [limit, code, name] : std::vector<Case>{
           {"ulimit -v 300000; exec", kExitMemory, "ulimit -v 300000"},
           {"ulimit -v 400000; exec", kExitMemory, "ulimit -v 400000"},
           {"ulimit -n 24; exec", kExitEnvironment, "ulimit -n 24"},
           {"ulimit -s 64; exec", kExitEnvironment, "ulimit -s 64"},
           {"ulimit -f 100; exec", kExitEnvironment, "ulimit -f 100"},
       }) {
    const Outcome outcome = train_in_shell(trial, limit, "");
    CAPTURE(limit, outcome.out, outcome.err);
    CHECK(outcome.code == code);
    CHECK_THAT(outcome.err, Contains(name) && !Contains("defect"));
  }
  for (const char* soft : {"ulimit -S -s 64; exec", "ulimit -S -n 24; exec"}) {
    const Outcome raised = train_in_shell(trial, soft, "--set train.steps=3 --set run.restart=never");
    CAPTURE(soft, raised.err);
    CHECK(raised.code == kExitOk);
  }
}

TEST_CASE("a batch that no machine has is refused within seconds and little memory", "[run][limits]") {
  const Trial trial;
  // A plan with 16 bytes per sample would take 16 GB.
  const std::string check = fmt::format("ulimit -v 4000000; exec {} check trial.toml", test::echelon_binary());
  const Outcome outcome = test::run_process(
      {.argv = {"bash", "-c", check + " --set batch.global=1000000000"}, .cwd = trial / "", .env = {}, .limit_s = 20});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitMemory);
  CHECK_THAT(outcome.out + outcome.err, Contains("for 'activations'") && Contains("seen more than once"));
}

#endif

TEST_CASE("a run whose output nobody reads any more goes on", "[run][limits]") {
  const Trial trial;
  const Outcome outcome = train_in_shell(trial, "set -o pipefail;", "| head -1");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK(trial.status()["state"] == "finished");
}

TEST_CASE("a variable of the environment that is nearly one of the program's is named", "[run][limits]") {
  const Trial trial;
  const Outcome outcome = train_in_shell(trial, "ECHELON_BATCHGLOBAL=3 ECHELON_HOME=/ ", "--set train.steps=1");
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains("ECHELON_BATCHGLOBAL is not read (did you mean ECHELON_BATCH_GLOBAL?)") &&
                              !Contains("ECHELON_HOME"));
}

TEST_CASE("control characters of a name reach no terminal, not even by the error that refuses them", "[run][limits]") {
  const Trial trial;
  for (const char* verb : {"check", "train"}) {
    const Outcome outcome = trial.echelon({verb, "trial.toml", "--set", "name=a\x1b]0;owned\x07\x1b[31mred"});
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Contains("a?]0;owned??[31mred") && !Contains("\x1b"));
  }
}

}  // namespace
}  // namespace echelon
