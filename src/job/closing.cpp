// SPDX-License-Identifier: Apache-2.0
#include "job/closing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/stretch.hpp"
#include "job/launch.hpp"
#include "report/status.hpp"

namespace echelon::inline job {
namespace {

constexpr double kMost_s = 30;

struct Closing {
  int exit_code = kExitLostRank;
  std::string attempt;
};
Closing closing;  // not changed once current_stretch().run_has_ended is true

// Its input is a pipe that the watched process holds open until it ends. 137: `timeout` has ended `cat` by SIGKILL.
constexpr const char* kGuard = R"sh(
while timeout --foreground -s KILL "$1" cat > /dev/null; [ $? -eq 137 ]; do
  read -r stat < /proc/"$2"/stat
  case ${stat##*) } in T*) ;; *) continue ;; esac
  echo "echelon: $3 was stopped after its run had ended: it is continued, so that its launcher returns" >&2
  kill -CONT "$2"
done)sh";

// The child has no environment but PATH, so that it is not taken for a rank (names_rank), and none of this process's
// files but its standard error. The pipe's end stays open until this process has ended.
void start_guard(double limit_s) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const char* path = std::getenv("PATH");
  std::string set_path = fmt::format("PATH={}", path != nullptr ? path : "/usr/bin:/bin");
  std::array<std::string, 7> words = {"sh",
                                      "-c",
                                      kGuard,
                                      "echelon-guard",
                                      fmt::format("{:.2f}", limit_s),
                                      std::to_string(::getpid()),
                                      fmt::format("{} on {}", rank_text(), host_name())};
  std::array<char*, words.size() + 1> argv{};
  for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  std::array<char*, 2> env = {set_path.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  pid_t child = 0;
  if (::posix_spawnp(&child, "sh", &files, nullptr, argv.data(), env.data()) != 0)
    log_debug("no process can be started that would continue this one if it is stopped while it leaves");
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[0]);
}

}  // namespace

double closing_limit_s(double hang_timeout_s) { return std::min(hang_timeout_s / 2, kMost_s); }

void begin_closing(int exit_code, const std::string& attempt, double hang_timeout_s) {
  if (current_stretch().run_has_ended) return;
  closing = {exit_code, attempt};
  current_stretch().run_has_ended = true;
  start_guard(closing_limit_s(hang_timeout_s) * 2 / 3);
}

std::string closing_note() {
  if (!current_stretch().run_has_ended) return {};
  return closing.exit_code == kExitOk ? "; the run was complete"
                                      : fmt::format("; the run had ended before, with exit code {}", closing.exit_code);
}

int give_up_closing(const std::string& why) {
  if (!current_stretch().run_has_ended) return kExitLostRank;
  if (closing.exit_code != kExitOk) return closing.exit_code;
  try {
    if (!closing.attempt.empty())
      change_verdict(closing.attempt, kExitLostRank, "the run is complete, but its launch did not end: " + why);
  } catch (const std::exception& error) {
    log_error("the status could not be changed: {}", error.what());
  }
  return kExitLostRank;
}

}  // namespace echelon::inline job
