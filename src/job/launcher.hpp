// A launcher (mpirun, srun) as a child process: started in a process group of its own, asked for its end, signalled,
// ended.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace echelon::inline job {

using EnvironmentWords = std::vector<std::pair<std::string, std::string>>;

class Launcher {
 public:
  // argv[0] is looked up on PATH. Standard input is empty, outputs are this process's. EnvironmentError where it cannot
  // be started.
  Launcher(const std::vector<std::string>& argv, const EnvironmentWords& environment);
  // Kills what is left of the group.
  ~Launcher();
  Launcher(const Launcher&) = delete;

  // The exit status, 128 + signal where one ended it; none while it runs.
  std::optional<int> poll();
  // To the launcher alone, which passes it on to its ranks as it does.
  void signal(int number) const;
  // TERM to the whole group, KILL after `patience_s`; returns once it is gone. Also of a group whose first process has
  // ended: ranks that it left behind.
  void end(double patience_s);

 private:
  int pid_ = -1;
  std::optional<int> status_;
};

// Whether `sh -c command` ends with 0 within `limit_s`, for each of the commands, all at once.
std::vector<bool> succeed(const std::vector<std::string>& commands, double limit_s);

}  // namespace echelon::inline job
