// SPDX-License-Identifier: Apache-2.0
// Finds the processes of this host that a launch has started, by a word of their environment, and detects ends of ranks
// that their launcher has not noticed.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace echelon::inline job {

struct Launched {
  pid_t pid = 0, parent = 0;
  char state = 0;     // state in /proc/PID/stat: R, S, D, T, Z ..
  std::string name;   // name of its program, at most 15 characters
  bool rank = false;  // its launcher has assigned it a rank
};

// Returns processes whose environment has the word "NAME=value", and their children that have ended but were not waited
// for (Z). Reads all of /proc; does not see processes of other users.
std::vector<Launched> launched_with(const std::string& word);

bool is_open_mpi_launcher(const Launched& process);
// Removes the temporary folder of a killed launcher (4.1: <TMPDIR>/ompi.<host>.<user>/pid.<PID>).
void remove_session_folder(pid_t launcher);

// Open MPI's mpirun usually notices the end of a rank at once. That of 4.1 may deadlock if a rank is killed while it
// starts others: ended ranks stay zombies, or none is left, and mpirun does not return.
class UnnoticedEnds {
 public:
  // Called repeatedly, `passed_s` after the last call. Returns for how long (as the sum of `passed_s`) an mpirun that
  // is not stopped has had a zombie at every call, or has waited for a lock without a child; 0 if none has.
  double look(const std::vector<Launched>& processes, double passed_s);

 private:
  std::map<pid_t, double> since_s_;
};

}  // namespace echelon::inline job
