// Which TERM ends a process at once. Each case has a process of its own, because flags of signals stay set.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>

#include "job/signals.hpp"

namespace echelon {
namespace {

// A child that takes a TERM, does `then`, takes another one, and leaves with 75.
pid_t child_that(const std::function<void()>& then) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  take_early_signals();
  std::raise(SIGTERM);
  then();
  std::raise(SIGTERM);
  ::_exit(75);
}

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
  const pid_t next_run = child_that([] {  // of the same process, as cells of a study are
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

}  // namespace
}  // namespace echelon
