// SPDX-License-Identifier: Apache-2.0
// A launcher (mpirun, srun) as a child process in a process group of its own. It can be signalled and ended, together
// with the ranks of this host. These are found by the first word of `environment`, because mpirun gives each rank a
// process group of its own, and a killed mpirun leaves its ranks behind.
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
  // argv[0] is looked up on PATH. Standard input is empty; outputs are those of this process. Throws EnvironmentError
  // if it cannot be started.
  Launcher(const std::vector<std::string>& argv, const EnvironmentWords& environment);
  // Kills what is left, and removes temporary files of killed Open MPI launchers.
  ~Launcher();
  Launcher(const Launcher&) = delete;

  // Returns the exit status, or 128 + signal if a signal ended it; none while it runs.
  std::optional<int> poll();
  // Sends the signal only to the launcher, which forwards it to its ranks in its own way.
  void signal(int number) const;
  // Sends TERM to the whole group, and after `patience_s` KILL to it and to all ranks. Returns once they are gone, or a
  // few seconds after KILL. May be called after the launcher has ended, for the processes it left behind, which get the
  // TERM that no launcher forwards any more.
  void end(double patience_s);
  // Waits for the remaining ranks to end by themselves; false if some have not within `patience_s`.
  bool ranks_leave(double patience_s);
  // Its processes on this host (launched.hpp); none if no word of the environment was given.
  std::vector<Launched> processes();

 private:
  std::vector<pid_t> left(bool ranks_alone);
  bool wait_for_all(double patience_s);

  int pid_ = -1;
  std::string mark_;          // NAME=value
  std::set<pid_t> open_mpi_;  // launchers that may leave a folder behind
  std::optional<int> status_;
};

// Runs all commands at once; returns for each whether `sh -c command` ends with 0 within `limit_s`.
std::vector<bool> succeed(const std::vector<std::string>& commands, double limit_s);

}  // namespace echelon::inline job
