// SPDX-License-Identifier: Apache-2.0
// <mpi.h> without its deprecated C++ bindings; turns its return codes into exceptions. Included by comm/mpi/ only.
#pragma once

#include <fmt/format.h>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

#include "base/error.hpp"

namespace echelon::inline comm::mpi {

// Throws EnvironmentError "<what>: <text of the library>" unless `code` is MPI_SUCCESS.
inline void check(int code, const std::string& what) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  int error_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING] = {};
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  if (error_class == MPI_ERR_TRUNCATE)
    throw EnvironmentError(
        what + ": the message that arrived does not fit its receive; do all ranks run the same configuration?");
  throw EnvironmentError(fmt::format("{}: {}", what, text));
}

}  // namespace echelon::inline comm::mpi
