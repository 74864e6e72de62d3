// SPDX-License-Identifier: Apache-2.0
// Runs the whole program as a child process, with a limit on its time.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace echelon::test {

struct Outcome {
  int code = -1;           // exit status; 128 + signal where a signal ended it
  bool timed_out = false;  // killed with its whole process group at the limit
  std::string out;
  std::string err;
  double seconds = 0;
};

using Environment = std::vector<std::pair<std::string, std::string>>;  // added to the caller's, or replacing it

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up on PATH
  std::string cwd = {};           // "": the current folder
  Environment env = {};
  double limit_s = 60;  // multiplied by patience()
};

Outcome run_process(const Command& command);

// Returns the path of `build/.../echelon`, which the Makefile passes in ECHELON_BINARY.
std::string echelon_binary();
// Returns mpirun -n RANKS --oversubscribe --bind-to none [--allow-run-as-root] echelon ARGS...
Command mpirun(int ranks, const std::vector<std::string>& args);

struct EchelonOptions {
  int ranks = 0;  // under mpirun; 0: one process without it
  std::string cwd = {};
  Environment env = {};
  double limit_s = 60;
};
// Runs `echelon words..`.
Outcome run_echelon(const std::vector<std::string>& words, const EchelonOptions& options = {});

// A folder under the system's temporary folder, removed with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace echelon::test
