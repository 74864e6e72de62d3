// The processes of this host that a launch has started, found by a word of their environment, and the ends of them that
// their launcher takes no notice of.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace echelon::inline job {

struct Launched {
  pid_t pid = 0, parent = 0;
  char state = 0;     // of /proc/PID/stat: R, S, D, T, Z ..
  std::string name;   // of its program, at most 15 characters
  bool rank = false;  // its launcher has given it a rank
};

// Those whose environment has the word "NAME=value", and those of their children that have ended and were not waited
// for (Z). Reads all of /proc; other users' processes are not seen.
std::vector<Launched> launched_with(const std::string& word);

bool is_open_mpi_launcher(const Launched& process);
// Removes the temporary folder of such a launcher that was killed (4.1: <TMPDIR>/ompi.<host>.<user>/pid.<PID>).
void remove_session_folder(pid_t launcher);

// Open MPI's mpirun takes notice of the end of a rank at once. That of 4.1 may wait for itself where one is killed
// while it starts others: ended ranks stay zombies, or none is left, and mpirun does not return.
class UnnoticedEnds {
 public:
  // Called every few moments, `passed_s` after the last call. For how long an mpirun that is not stopped has had a
  // zombie at every call, or has waited for a lock without a child, by the sum of `passed_s`; 0 where none has.
  double look(const std::vector<Launched>& processes, double passed_s);

 private:
  std::map<pid_t, double> since_s_;
};

}  // namespace echelon::inline job
