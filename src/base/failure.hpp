// The exit code and the text of any exception that ends a process or a run.
#pragma once

#include <exception>
#include <string>

#include "base/error.hpp"

namespace echelon::inline base {

struct Failure {
  ExitCode code;
  std::string text;
};

// An Error has its own; bad_alloc is 6; errors of files, threads and other calls of the operating system are 3, with
// the limits of this process (limits.hpp) where one of them may be the cause; all others 1.
Failure failure_of(const std::exception& error);

}  // namespace echelon::inline base
