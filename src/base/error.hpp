// SPDX-License-Identifier: Apache-2.0
// The exceptions that end a run, each with the exit code that the shell sees. main.cpp prints what() on standard error
// and returns code(). Among other exceptions, std::bad_alloc ends with 6, file-system and system errors with 3, and all
// others with 1 and kReportIt.
#pragma once

#include <stdexcept>
#include <string>

namespace echelon::inline base {

// The numbers must not change, because scripts and schedulers read them.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitConfig = 2,
  kExitEnvironment = 3,
  kExitData = 4,
  kExitNumeric = 5,
  kExitMemory = 6,
  kExitLostRank = 7,
  kExitUnmet = 8,
  kExitRequeue = 75,
  kExitInterrupted = 130,
};

// The table that `echelon --help` prints; slurm/STOPPING.md has it too.
inline constexpr const char* kExitCodesText =
    "    0  finished, or finished already\n"
    "    1  internal error: a defect of echelon, please report it\n"
    "    2  usage or config\n"
    "    3  environment or launch\n"
    "    4  data\n"
    "    5  numeric failure: NaN, divergence, replicas that disagree\n"
    "    6  out of memory\n"
    "    7  hang or lost rank\n"
    "    8  ran well, but a goal, a comparison or a verification was not met\n"
    "   75  stopped early with a good checkpoint: run the same command again\n"
    "  130  interrupted, with a checkpoint\n";

// Printed after the message of an internal error.
inline constexpr const char* kReportIt =
    "echelon: this is an internal error, a defect of echelon: please report it with the config and these lines\n";

// An error whose text is for the user: the problem, its place (key, file:line), and the nearest valid choice. The text
// has no final newline.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The command line or the experiment cannot be run as written (exit 2).
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(kExitConfig, what) {}
};

// The machine, the launch or the file system does not offer what the run needs (exit 3).
struct EnvironmentError : Error {
  explicit EnvironmentError(const std::string& what) : Error(kExitEnvironment, what) {}
};

// A data file is missing, damaged or has invalid content (exit 4).
struct DataError : Error {
  explicit DataError(const std::string& what) : Error(kExitData, what) {}
};

// A loss or weight is no longer a finite number, or replicas no longer agree (exit 5).
struct NumericError : Error {
  explicit NumericError(const std::string& what) : Error(kExitNumeric, what) {}
};

// Everything ran, but a goal, a comparison or a verification was not met (exit 8).
struct UnmetError : Error {
  explicit UnmetError(const std::string& what) : Error(kExitUnmet, what) {}
};

// The device's memory, or the limit set on it, is used up (exit 6).
struct MemoryError : Error {
  explicit MemoryError(const std::string& what) : Error(kExitMemory, what) {}
};

}  // namespace echelon::inline base
