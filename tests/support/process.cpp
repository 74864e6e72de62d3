// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "tests/support/patience.hpp"

extern char** environ;

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

constexpr double kGrace_s = 2;  // between TERM and KILL, and for pipes that grandchildren still hold open

std::string lookup(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::absolute(name).string();
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin");
  for (std::string folder; std::getline(path, folder, ':');)
    if (const std::string file = folder + "/" + name; access(file.c_str(), X_OK) == 0) return file;
  throw EnvironmentError("no program '" + name + "' on PATH");
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.env) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : command.env) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Returns every process below `root`, found by parent: mpirun puts its ranks in process groups of their own.
std::vector<pid_t> descendants(pid_t root) {
  std::vector<std::pair<pid_t, pid_t>> parent_of;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (pid <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    char state = 0;
    pid_t parent = 0;
    std::istringstream(line.substr(name_end + 1)) >> state >> parent;
    parent_of.emplace_back(pid, parent);
  }
  std::vector<pid_t> all{root};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const auto& [pid, parent] : parent_of)
      if (parent == all[i]) all.push_back(pid);
  return {all.begin() + 1, all.end()};
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(std::string("pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
  // Reads the available text; closes the reading end when the writers are gone.
  void drain(std::string& text) {
    char buffer[65536];
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) close_end(0);
  }
  int ends[2] = {-1, -1};
};

[[noreturn]] void become(const char* file, char** argv, char** env, const char* cwd, int out, int err) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (*cwd && chdir(cwd) != 0) _exit(126);
  execve(file, argv, env);
  _exit(127);
}

void end_everything(pid_t child, double started_s, double limit_s, bool& termed, bool& killed) {
  if (!termed) {
    termed = true;
    kill(-child, SIGTERM);
  } else if (!killed && now_s() - started_s > limit_s + kGrace_s) {
    killed = true;
    for (pid_t pid : descendants(child)) kill(pid, SIGKILL);
    kill(-child, SIGKILL);
  }
}

}  // namespace

Outcome run_process(const Command& command) {
  std::vector<std::string> args = command.argv;
  std::vector<std::string> env = environment_of(command);
  const std::string file = lookup(args.at(0));
  const std::vector<char*> argv = pointers(args), envp = pointers(env);
  Pipe out, err;
  const double limit_s = command.limit_s * patience();
  const double started_s = now_s();
  const pid_t child = fork();
  if (child < 0) throw EnvironmentError(std::string("fork: ") + std::strerror(errno));
  if (child == 0)
    become(file.c_str(), const_cast<char**>(argv.data()), const_cast<char**>(envp.data()), command.cwd.c_str(),
           out.ends[1], err.ends[1]);
  setpgid(child, child);
  out.close_end(1);
  err.close_end(1);

  Outcome outcome;
  int status = 0;
  bool ended = false, termed = false, killed = false;
  double ended_s = 0;
  while (!ended || out.ends[0] >= 0 || err.ends[0] >= 0) {
    pollfd polled[2] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};  // poll() ignores negative descriptors
    poll(polled, 2, 20);
    if (polled[0].revents != 0) out.drain(outcome.out);
    if (polled[1].revents != 0) err.drain(outcome.err);
    if (!ended && waitpid(child, &status, WNOHANG) == child) {
      ended = true;
      ended_s = now_s();
    }
    if (ended && now_s() - ended_s > kGrace_s) break;
    if (!ended && now_s() - started_s > limit_s) {
      outcome.timed_out = true;
      end_everything(child, started_s, limit_s, termed, killed);
    }
  }
  kill(-child, SIGKILL);  // processes of the group that outlived the child
  outcome.seconds = ended_s - started_s;
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

std::string echelon_binary() {
  if (const char* given = std::getenv("ECHELON_BINARY")) return given;
  return (fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "echelon").string();
}

Command mpirun(int ranks, const std::vector<std::string>& args) {
  Command command;
  command.argv = {"mpirun", "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) command.argv.emplace_back("--allow-run-as-root");
  command.argv.push_back(echelon_binary());
  command.argv.insert(command.argv.end(), args.begin(), args.end());
  return command;
}

Outcome run_echelon(const std::vector<std::string>& words, const EchelonOptions& options) {
  Command command = mpirun(options.ranks, words);
  if (options.ranks == 0) {
    command.argv = {echelon_binary()};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
  }
  command.cwd = options.cwd, command.env = options.env, command.limit_s = options.limit_s;
  return run_process(command);
}

TempFolder::TempFolder() {
  path_ = (fs::temp_directory_path() / "echelon-test-XXXXXX").string();
  if (!mkdtemp(path_.data())) throw EnvironmentError("mkdtemp " + path_ + ": " + std::strerror(errno));
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace echelon::test
