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

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// In the child: never returns.
[[noreturn]] void become(const std::vector<char*>& argv, const EnvironmentWords& environment) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : kRequestSignals) (void)::signal(number, SIG_DFL);
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(argv.front(), argv.data());
  ::_exit(kNotStarted);
}

}  // namespace

Launcher::Launcher(const std::vector<std::string>& argv, const EnvironmentWords& environment) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw EnvironmentError(fmt::format("{}: cannot be started: {}", argv.front(), std::strerror(errno)));
  if (pid_ == 0) become(words, environment);
  ::setpgid(pid_, pid_);
}

Launcher::~Launcher() { end(0); }

std::optional<int> Launcher::poll() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

void Launcher::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

void Launcher::end(double patience_s) {
  const auto there = [this] { return !poll() || ::kill(-pid_, 0) == 0; };
  if (!there()) return;
  ::kill(-pid_, SIGTERM);
  for (const double until_s = now_s() + patience_s; there() && now_s() < until_s;) rest();
  ::kill(-pid_, SIGKILL);
  while (!poll()) rest();
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
