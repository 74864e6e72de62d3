// SPDX-License-Identifier: Apache-2.0
#include "fault/process_faults.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "base/log.hpp"

extern "C" char** environ;

namespace echelon::inline fault {

void kill_this_process() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

void stop_this_process(double seconds) {
  pid_t child = 0;
  if (seconds > 0) {
    std::string shell = "sh", flag = "-c", script = fmt::format("sleep {}; kill -CONT {}", seconds, ::getpid());
    const std::array<char*, 4> words = {shell.data(), flag.data(), script.data(), nullptr};
    if (::posix_spawnp(&child, "sh", nullptr, nullptr, words.data(), environ) != 0) {
      log_warning("this process is not stopped, because no process can be started that would continue it");
      return;
    }
  }
  ::kill(::getpid(), SIGSTOP);
  if (child > 0) ::waitpid(child, nullptr, 0);
}

}  // namespace echelon::inline fault
