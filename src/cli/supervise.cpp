// SPDX-License-Identifier: Apache-2.0
// echelon supervise: watches a launcher and its run. It ends a launcher that does not return after its run has ended,
// or that does not notice the end of a rank. It records the end of a run whose ranks were all killed. After lost ranks
// it restarts a run on the remaining hosts, and on all hosts once they are back.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "job/launched.hpp"
#include "job/launcher.hpp"
#include "job/signals.hpp"
#include "report/status.hpp"

namespace echelon::cli {
namespace {

constexpr double kLook_s = 0.2;
constexpr double kLookAtProcesses_s = 1;  // reads all of /proc
constexpr double kPause_s = 1;            // before a restart, if the launcher failed to start a run
constexpr double kTermPatience_s = 5;
constexpr double kProbeLimit_s = 10;

std::atomic<int> asked{0};  // the newest signal to forward
void on_signal(int number) { asked = number; }

// The file in which rank 0 names its attempt. It is removed at the end.
class AttemptFile {
 public:
  AttemptFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = fmt::format("{}/echelon-run-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) throw EnvironmentError(fmt::format("{}: cannot be created: {}", path_, std::strerror(errno)));
    ::close(fd);
  }
  ~AttemptFile() { ::unlink(path_.c_str()); }
  AttemptFile(const AttemptFile&) = delete;

  const std::string& path() const { return path_; }
  void clear() const { std::ofstream(path_, std::ios::trunc); }
  std::string attempt() const {
    std::string folder;
    std::getline(std::ifstream(path_), folder);
    return folder;
  }

 private:
  std::string path_;
};

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options) : options_(options), hosts_(options.hosts) {
    if (options.command.empty())
      throw ConfigError("supervise: no command; e.g. echelon supervise -- mpirun -n 4 echelon train a.toml");
    if (options.hosts.empty() && options.min_hosts > 0) throw ConfigError("--min-hosts needs --hosts");
    if (options.min_hosts > static_cast<int>(options.hosts.size()))
      throw ConfigError(fmt::format("--min-hosts {}: must be at most {}, the number of --hosts", options.min_hosts,
                                    options.hosts.size()));
    if (!options.hosts.empty() && std::none_of(options.command.begin(), options.command.end(), names_hosts))
      throw ConfigError("--hosts: the command has no {hosts} or {slots}, so that no host can be left out");
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (const int number : kRequestSignals) ::sigaction(number, &action, nullptr);
    release_signals();
  }

  int run() {
    if (!find_hosts()) return kExitEnvironment;
    for (int restarts = 0;; ++restarts) {
      grows_ = false;
      const int code = watch_launch();
      // If the command has started a run before, a launcher that fails now has met another loss.
      const bool fails = restarts > 0 && !read_attempt() && code != kExitOk && code != kExitConfig;
      const bool lost = code == kExitLostRank || fails;
      const bool again = (lost && restarts < options_.restarts) || (grows_ && code == kExitRequeue);
      if (!again || stopping_) return code;
      if (fails) std::this_thread::sleep_for(std::chrono::duration<double>(kPause_s));
      if (!find_hosts()) return code;
      log_info("supervise: starts again{}", hosts_text());
    }
  }

 private:
  static bool names_hosts(const std::string& word) {
    return word.find("{hosts}") != std::string::npos || word.find("{slots}") != std::string::npos;
  }

  std::string hosts_text() const {
    if (hosts_.empty()) return {};
    return fmt::format(" on {} of {} hosts: {}", hosts_.size(), options_.hosts.size(), fmt::join(hosts_, ", "));
  }

  std::vector<std::string> words() const {
    std::vector<std::string> slots;
    for (const std::string& host : hosts_) slots.push_back(fmt::format("{}:{}", host, options_.per_host));
    std::vector<std::string> all = options_.command;
    for (std::string& word : all) {
      word = replaced(word, "{hosts}", fmt::format("{}", fmt::join(hosts_, ",")));
      word = replaced(word, "{slots}", fmt::format("{}", fmt::join(slots, ",")));
      word = replaced(word, "{nodes}", std::to_string(hosts_.size()));
      word = replaced(word, "{ranks}", std::to_string(hosts_.size() * static_cast<std::size_t>(options_.per_host)));
    }
    return all;
  }

  // Finds the hosts that answer; returns false if they are too few.
  bool find_hosts() {
    if (options_.hosts.empty()) return true;
    hosts_ = answering();
    const std::size_t least = static_cast<std::size_t>(std::max(1, options_.min_hosts));
    if (hosts_.size() >= least) return true;
    log_error("supervise: {} of {} hosts answer, fewer than --min-hosts {}; nothing is started", hosts_.size(),
              options_.hosts.size(), least);
    return false;
  }
  std::vector<std::string> answering() const {
    std::vector<std::string> commands, found;
    for (const std::string& host : options_.hosts) commands.push_back(replaced(options_.probe, "{host}", host));
    const std::vector<bool> answers = succeed(commands, kProbeLimit_s);
    for (std::size_t i = 0; i < answers.size(); ++i)
      if (answers[i]) found.push_back(options_.hosts[i]);
    return found;
  }

  // On TERM, srun kills its ranks at once and mpirun a second later. Both forward USR1, which requests the same stop,
  // so the first TERM is sent as USR1. A second TERM is sent as TERM.
  int passed_on(int number) {
    const bool again = std::exchange(told_to_end_, told_to_end_ || number == SIGTERM);
    const std::string name = std::filesystem::path(options_.command.front()).filename();
    const bool kills = name == "srun" || name == "mpirun" || name == "mpiexec";
    return number == SIGTERM && kills && !again ? SIGUSR1 : number;
  }

  // Watches one launch to its end; returns the exit code of the run.
  int watch_launch() {
    file_.clear();
    Launcher launcher(words(), {{"ECHELON_ATTEMPT_FILE", file_.path()}});
    UnnoticedEnds unnoticed;
    double ended_s = -1, probed_s = now_s(), looked_s = now_s();
    for (;; std::this_thread::sleep_for(std::chrono::duration<double>(kLook_s))) {
      if (const int number = asked.exchange(0); number != 0) {
        launcher.signal(passed_on(number));
        stopping_ = stopping_ || number != SIGHUP;
      }
      if (const std::optional<int> code = launcher.poll()) {
        (void)launcher.ranks_leave(options_.grace_s);  // the next launch needs the lock that the ranks hold
        launcher.end(kTermPatience_s);
        return settle(*code);
      }
      const std::optional<Status> status = read_attempt();
      const bool ended = status && status->state != "running";
      if (!ended) ended_s = -1;  // an attempt that lost workers has ended, but its run continues
      if (ended && ended_s < 0) ended_s = now_s();
      if (ended && now_s() - ended_s > options_.grace_s) {
        log_warning("supervise: {} has not returned {:.0f} s after its run ended and is terminated",
                    options_.command.front(), now_s() - ended_s);
        launcher.end(kTermPatience_s);
        return settle(status->exit_code.value_or(kExitLostRank));
      }
      if (const double passed_s = now_s() - looked_s; passed_s > kLookAtProcesses_s) {
        looked_s = now_s();
        const double s = unnoticed.look(launcher.processes(), std::min(passed_s, 2 * kLookAtProcesses_s));
        if (s > options_.grace_s) {
          log_warning("supervise: {} has not reacted to the end of a rank for {:.0f} s and is terminated",
                      options_.command.front(), s);
          launcher.end(0);
          return settle(128 + SIGKILL);
        }
      }
      if (!ended && hosts_.size() < options_.hosts.size() && now_s() - probed_s > options_.look_s) {
        probed_s = now_s();
        if (!grows_ && answering().size() > hosts_.size()) {
          log_info("supervise: a lost host answers again: the run saves a checkpoint and continues with that host");
          grows_ = true;
          launcher.signal(SIGUSR1);
        }
      }
    }
  }

  std::optional<Status> read_attempt() const {
    const std::string attempt = file_.attempt();
    return attempt.empty() ? std::nullopt : read_status(attempt);
  }

  // Called once the launcher is gone. Returns the run's own exit code if it has one. Otherwise it returns the code that
  // the launcher's exit implies, and writes it into the status of a run that could not do so.
  int settle(int launcher_code) {
    std::optional<Status> status = read_attempt();
    if (status && status->exit_code) {
      settle_status(file_.attempt());  // the process that wrote the verdict may have been killed before status.json
      return *status->exit_code;
    }
    if (!status) return launcher_code > 128 ? static_cast<int>(kExitLostRank) : launcher_code;
    const std::string reason =
        fmt::format("all ranks ended without a message; {} returned {}{}", options_.command.front(), launcher_code,
                    launcher_code > 128 ? fmt::format(" (signal {})", launcher_code - 128) : "");
    status->state = "failed";
    status->exit_code = kExitLostRank;
    status->reason = reason;
    (void)conclude(file_.attempt(), *status);
    log_error("supervise: {}", reason);
    return kExitLostRank;
  }

  const SuperviseOptions& options_;
  std::vector<std::string> hosts_;
  AttemptFile file_;
  bool grows_ = false, stopping_ = false, told_to_end_ = false;
};

}  // namespace

int run_supervised(const SuperviseOptions& options) { return Supervisor(options).run(); }

}  // namespace echelon::cli
