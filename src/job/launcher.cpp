// SPDX-License-Identifier: Apache-2.0
#include "job/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "job/signals.hpp"

namespace echelon::inline job {
namespace {

constexpr int kNotStarted = 127;
constexpr double kKilled_s = 5;  // time for the kernel to end a killed process

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// Runs in the child and never returns.
[[noreturn]] void become(const std::vector<char*>& argv, const EnvironmentWords& environment) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : kRequestSignals) (void)::signal(number, SIG_DFL);
  (void)::signal(SIGPIPE, SIG_DFL);
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(argv.front(), argv.data());
  ::_exit(kNotStarted);
}

}  // namespace

Launcher::Launcher(const std::vector<std::string>& argv, const EnvironmentWords& environment) {
  if (!environment.empty()) mark_ = environment.front().first + "=" + environment.front().second;
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw EnvironmentError(fmt::format("{}: cannot be started: {}", argv.front(), std::strerror(errno)));
  if (pid_ == 0) become(words, environment);
  ::setpgid(pid_, pid_);
  if (!mark_.empty()) open_mpi_.insert(pid_);  // in case it turns out to be Open MPI's and is killed early
}

Launcher::~Launcher() {
  end(0);
  for (const pid_t pid : open_mpi_) remove_session_folder(pid);
}

std::optional<int> Launcher::poll() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

void Launcher::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::vector<Launched> Launcher::processes() {
  if (mark_.empty()) return {};
  std::vector<Launched> all = launched_with(mark_);
  for (const Launched& one : all)
    if (is_open_mpi_launcher(one)) open_mpi_.insert(one.pid);
  return all;
}

// Returns the living processes other than the launcher itself.
std::vector<pid_t> Launcher::left(bool ranks_alone) {
  std::vector<pid_t> pids;
  for (const Launched& one : processes())
    if (one.pid != pid_ && one.state != 'Z' && (one.rank || (!ranks_alone && ::getpgid(one.pid) == pid_)))
      pids.push_back(one.pid);
  return pids;
}

bool Launcher::wait_for_all(double patience_s) {
  for (const double until_s = now_s() + patience_s;; rest())
    if (poll() && left(false).empty())
      return true;
    else if (now_s() >= until_s)
      return false;
}

bool Launcher::ranks_leave(double patience_s) {
  for (const double until_s = now_s() + patience_s; !left(true).empty(); rest())
    if (now_s() >= until_s) return false;
  return true;
}

void Launcher::end(double patience_s) {
  if (wait_for_all(0)) return;
  const bool left_behind = poll().has_value();
  ::kill(-pid_, SIGTERM);
  if (left_behind)
    for (const pid_t rank : left(true)) ::kill(rank, SIGTERM);
  if (patience_s > 0 && wait_for_all(patience_s)) return;
  ::kill(-pid_, SIGKILL);
  for (const pid_t pid : left(false)) ::kill(pid, SIGKILL);
  (void)wait_for_all(kKilled_s);
}

std::vector<bool> succeed(const std::vector<std::string>& commands, double limit_s) {
  std::vector<std::unique_ptr<Launcher>> all;
  for (const std::string& command : commands)
    all.push_back(std::make_unique<Launcher>(std::vector<std::string>{"/bin/sh", "-c", command}, EnvironmentWords{}));
  const double until_s = now_s() + limit_s;
  std::vector<bool> results;
  for (const auto& one : all) {
    while (!one->poll() && now_s() < until_s) rest();
    results.push_back(one->poll() == std::optional<int>(0));
  }
  return results;
}

}  // namespace echelon::inline job
