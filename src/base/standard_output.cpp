#include "base/standard_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"

namespace echelon::inline base {

void finish_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  throw EnvironmentError(errno != 0 ? fmt::format("standard output cannot be written: {}", std::strerror(errno))
                                    : "standard output cannot be written");
}

}  // namespace echelon::inline base
