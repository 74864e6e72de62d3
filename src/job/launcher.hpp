// A launcher (mpirun, srun) as a child process: started in a process group of its own, asked for its end, signalled,
// ended, together with the ranks of this host, which are known by the first word of `environment`: mpirun gives each
// rank a process group of its own, and one that is killed leaves them behind.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "job/launched.hpp"

namespace echelon::inline job {

using EnvironmentWords = std::vector<std::pair<std::string, std::string>>;

class Launcher {
 public:
  // argv[0] is looked up on PATH. Standard input is empty, outputs are this process's. EnvironmentError where it cannot
  // be started.
  Launcher(const std::vector<std::string>& argv, const EnvironmentWords& environment);
  // Kills what is left, and removes temporary files of Open MPI's launchers that were killed.
  ~Launcher();
  Launcher(const Launcher&) = delete;

  // The exit status, 128 + signal where one ended it; none while it runs.
  std::optional<int> poll();
  // To the launcher alone, which passes it on to its ranks as it does.
  void signal(int number) const;
  // TERM to the whole group, KILL to it and to all ranks after `patience_s`; returns once they are gone, or a few
  // seconds after KILL. Also after the launcher has ended: what it left behind, which gets the TERM that no launcher
  // passes on any more.
  void end(double patience_s);
  // Waits for the ranks that are left to end by themselves; false where some have not within `patience_s`.
  bool ranks_leave(double patience_s);
  // Its processes on this host (launched.hpp); none where no word of the environment was given.
  std::vector<Launched> processes();

 private:
  std::vector<pid_t> left(bool ranks_alone);
  bool wait_for_all(double patience_s);

  int pid_ = -1;
  std::string mark_;          // NAME=value
  std::set<pid_t> open_mpi_;  // launchers that may leave a folder
  std::optional<int> status_;
};

// Whether `sh -c command` ends with 0 within `limit_s`, for each of the commands, all at once.
std::vector<bool> succeed(const std::vector<std::string>& commands, double limit_s);

}  // namespace echelon::inline job
