// SPDX-License-Identifier: Apache-2.0
// Signals to a process that is only starting: before MPI_Init ends, and around the restart of prepare_process.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own handlers hide where main begins
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

// A second or two, paced so that a quick machine is still at it when the signal comes.
const test::Sets kLong = {"train.epochs=160", "evaluate.every_epochs=0", "checkpoint.every_epochs=0",
                          "checkpoint.every_steps=0", "device.pace_ms=0.5"};
constexpr double kLimit_s = 40;

// Shell: returns once process $1 is in main, which catches SEGV from its second line on (bit 10 of SigCgt); fails where
// it is gone.
constexpr const char* kInMain = R"sh(
in_main() {
  until grep -qE '^SigCgt.*[4-7c-f][0-9a-f]{2}$' /proc/$1/status && ! grep -qx bash /proc/$1/comm; do
    kill -0 $1 || return 1
  done
}
)sh";

void check_stopped(const test::Trial& trial, const test::Outcome& outcome, int code) {
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == code);
  CHECK(trial.status()["state"] == "stopped");
}

TEST_CASE("a signal of the first moments of a process is kept until the run has begun", "[run]") {
  for (const auto& [signal, code] :
       {std::pair("TERM", kExitRequeue), {"USR1", kExitRequeue}, {"INT", kExitInterrupted}})
    for (const double pause_s : {0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3}) {
      const test::Trial trial;
      std::string command = "env -u OMP_WAIT_POLICY ";  // without it the process restarts itself once
      for (const std::string& word : trial.words(0, kLong)) command += "'" + word + "' ";
      const std::string script = fmt::format("in_main $pid; sleep {}; kill -{} $pid; wait $pid", pause_s, signal);
      const test::Outcome outcome = trial.in_background(command, kInMain + script, kLimit_s);
      INFO(signal << " after " << pause_s << " s\n" << outcome.out << outcome.err);
      check_stopped(trial, outcome, code);
    }
}

TEST_CASE("a TERM to one rank that is only starting stops all of them", "[run]") {
  for (const double pause_s : {0.0, 0.05, 0.1, 0.2, 0.3}) {
    const test::Trial trial;
    const std::string script = fmt::format(
        "until [ -n \"$(rank 1)\" ]; do kill -0 $pid || exit 99; done; one=$(rank 1); in_main $one; sleep {}; "
        "kill -TERM $one; wait $pid",
        pause_s);
    const test::Outcome outcome = trial.train_and(2, kLong, kInMain + script, kLimit_s);
    INFO(pause_s << " s\n" << outcome.out << outcome.err);
    check_stopped(trial, outcome, kExitRequeue);
  }
}

}  // namespace
}  // namespace echelon
#endif
