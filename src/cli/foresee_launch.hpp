// Whether a launch can be run, worked out before it, without MPI.
#pragma once

#include "cli/options.hpp"

namespace echelon::cli {

// Throws what `train` of this config on so many ranks would refuse before its first step, and MemoryError where its
// memory, as far as it can be foretold (parallel.split = "auto" is not), exceeds the limit of a rank or a host.
// Reads the data's headers; prints nothing.
void foresee_launch(const CheckOptions& options);

}  // namespace echelon::cli
