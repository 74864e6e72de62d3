// The whole program as a child process, with a limit on its life.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace echelon::test {

struct Outcome {
  int code = -1;           // exit status; 128 + signal where one ended it
  bool timed_out = false;  // killed at the limit, with its whole process group
  std::string out;
  std::string err;
  double seconds = 0;
};

using Environment = std::vector<std::pair<std::string, std::string>>;  // added to, or taking the place of, the caller's

struct Command {
  std::vector<std::string> argv;  // argv[0] looked up on PATH
  std::string cwd = {};           // "" : the present folder
  Environment env = {};
  double limit_s = 60;  // times patience()
};

Outcome run_process(const Command& command);

// `build/.../echelon`, as the Makefile passes it (ECHELON_BINARY).
std::string echelon_binary();
// {"mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", ["--allow-run-as-root"], echelon, args...}
Command mpirun(int ranks, const std::vector<std::string>& args);

struct EchelonOptions {
  int ranks = 0;  // under mpirun; 0: a lone process
  std::string cwd = {};
  Environment env = {};
  double limit_s = 60;
};
// `echelon words..`.
Outcome run_echelon(const std::vector<std::string>& words, const EchelonOptions& options = {});

// A folder under the system's temporary folder that goes with the object.
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
