// SPDX-License-Identifier: Apache-2.0
// Signals that end a process, and the exit code. Each case has a process of its own, because flags of signals stay
// set.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>

#include "base/crash_note.hpp"
#include "base/error.hpp"
#include "base/stretch.hpp"
#include "job/launch_watch.hpp"
#include "job/signals.hpp"

namespace echelon {
namespace {

// Makes a child that gets a TERM, runs `then`, gets another one, and must leave with 75.
pid_t child_that(const std::function<void()>& then) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  take_early_signals();
  std::raise(SIGTERM);
  then();
  std::raise(SIGTERM);
  ::_exit(75);
}

// Hides the output of a child at its end, which belongs to no test.
void say_nothing() { ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO); }

int code_of(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a second TERM ends a process at once, unless it follows the first at once or the process leaves", "[job]") {
  const pid_t hasty = child_that([] {});
  const pid_t later = child_that([] { ::sleep(kTermApart_s); });
  const pid_t leaving = child_that([] {
    ::sleep(kTermApart_s);
    begin_to_leave();
  });
  const pid_t next_run = child_that([] {  // the next run of the same process, as with cells of a study
    begin_to_leave();
    watch_for_second_signals(true);
    watch_for_second_signals(false);
    ::sleep(kTermApart_s);
  });
  CHECK(code_of(hasty) == 75);
  CHECK(code_of(leaving) == 75);
  CHECK(code_of(later) == 143);
  CHECK(code_of(next_run) == 143);
}

// srun --kill-on-bad-exit sends TERM to the other ranks, which would wait for the lost one until run.hang_timeout_s.
TEST_CASE("a rank that gets a TERM in MPI_Init and comes no further ends with 7", "[job]") {
  const auto child_in = [](const char* stretch) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    say_nothing();
    take_early_signals();
    enter_stretch(stretch);
    const LaunchWatch watch({.limit_s = 300, .end = {}});
    std::raise(SIGTERM);
    ::sleep(7);  // the limit is 5 s
    ::_exit(75);
  };
  const pid_t start = child_in(kStartOfMpi), end = child_in("MPI_Finalize");
  CHECK(code_of(start) == kExitLostRank);
  CHECK(code_of(end) == 75);
}

TEST_CASE("a crash in MPI_Init is a lost rank, not a defect of echelon", "[job]") {
  if (!explain_crashes()) return;  // a sanitizer has handlers of its own
  const auto child_in = [](const char* stretch) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    say_nothing();
    explain_crashes();
    enter_stretch(stretch);
    std::raise(SIGSEGV);
    ::_exit(0);
  };
  CHECK(code_of(child_in(kStartOfMpi)) == kExitLostRank);
  CHECK(code_of(child_in(nullptr)) == 128 + SIGSEGV);
}

}  // namespace
}  // namespace echelon
