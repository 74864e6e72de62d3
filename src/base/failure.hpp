// SPDX-License-Identifier: Apache-2.0
// Maps any exception that ends a process or a run to its exit code and text.
#pragma once

#include <exception>
#include <string>

#include "base/error.hpp"

namespace echelon::inline base {

struct Failure {
  ExitCode code;
  std::string text;
};

// An Error has its own code; bad_alloc is 6; errors of files, threads and other system calls are 3, with the limits of
// this process (limits.hpp) if one of them may be the cause; all others are 1.
Failure failure_of(const std::exception& error);

}  // namespace echelon::inline base
