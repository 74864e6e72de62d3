// SPDX-License-Identifier: Apache-2.0
// The end of a launch under plain mpirun: ranks that are stopped after their run has ended.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// The limit of closing MPI is half of the timeout.
const test::Sets kShort = {"train.epochs=12", "checkpoint.every_steps=0", "run.hang_timeout_s=6"};

// Shell functions and variables; rank 1 (process $b) is stopped at once when the run is finished.
constexpr const char* kStopped = R"sh(
running; a=$(rank 0); b=$(rank 1)
gone() { [ ! -e /proc/$1 ] || grep -q ') Z' /proc/$1/stat; }
until grep -qs finished results/trial/run-*/01/verdict.json; do sleep 0.002; done
kill -STOP $b
)sh";

// A tracer: SIGCONT does not continue the process that it holds. It ends with that process.
constexpr const char* kHold = R"sh(hold='
import ctypes, os, sys
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
held = int(sys.argv[1])
for request in PTRACE_SEIZE, PTRACE_INTERRUPT:
    if ctypes.CDLL(None, use_errno=True).ptrace(request, held, None, None) != 0:
        sys.exit("ptrace: " + os.strerror(ctypes.get_errno()))
while os.WIFSTOPPED(os.waitpid(held, WALL)[1]): pass
')sh";

}  // namespace

// Rank 1 goes on by a millisecond at a time, until rank 0 waits for it no longer and leaves.
TEST_CASE("a rank that is stopped after the others have left does not keep mpirun", "[run][leaving]") {
  for (int tries = 0; tries < 5; ++tries) {
    const test::Trial trial;
    const test::Outcome outcome = trial.train_and(2, kShort, std::string(kStopped) + R"sh(
until gone $a || gone $b; do kill -CONT $b; sleep 0.001; kill -STOP $b; sleep 0.1; done
gone $b || echo stopped; wait $pid)sh",
                                                  60);
    INFO(outcome.out << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.code == kExitOk);
    CHECK(trial.status()["exit_code"] == kExitOk);
    if (outcome.out.find("stopped\n") == std::string::npos) continue;  // it has left first
    CHECK_THAT(outcome.err, Contains("echelon: rank 1 on ") && Contains(" was stopped after its run had ended"));
    return;
  }
  FAIL("rank 1 has always left first");
}

TEST_CASE("a rank that never leaves ends the launch with 7, and the status of the finished run agrees",
          "[run][leaving]") {
  for (int tries = 0; tries < 5; ++tries) {
    const test::Trial trial;
    const test::Outcome outcome = trial.train_and(2, kShort, std::string(kHold) + kStopped + R"sh(
python3 -c "$hold" $b &
sleep 1; ! gone $a || { echo left; kill -KILL $b; }
wait $pid)sh",
                                                  60);
    INFO(outcome.out << outcome.err);
    if (outcome.out.find("left\n") != std::string::npos) continue;  // rank 0 did not have to wait for rank 1
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.code == kExitLostRank);
    CHECK_THAT(outcome.err, Contains("a rank does not reach it") && Contains("; the run was complete"));
    const auto status = trial.status();
    CHECK(status["state"] == "finished");
    CHECK(status["exit_code"] == kExitLostRank);
    CHECK_THAT(status["reason"].get<std::string>(), Contains("the run is complete, but its launch did not end: rank "));
    CHECK(trial.train(2, kShort).code == kExitOk);  // "already finished"
    return;
  }
  FAIL("rank 0 has always left first");
}

}  // namespace echelon
