// Whether a launch can be run, worked out before it, without MPI.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/options.hpp"
#include "config/batch_plan.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

struct LaunchMemory {
  Config config;
  std::int64_t samples = 0;         // of the training set
  std::int64_t steps = 0;           // of the run; not with parallel.split = "auto"
  BatchPlan batch;                  // likewise
  std::vector<Footprint> of_ranks;  // of the fullest host; empty with parallel.split = "auto", which is not foretold
};

// 0 of either: not known (parallel.split = "auto").
struct Foreseen {
  std::int64_t steps = 0;   // of the run
  double memory_bytes = 0;  // of the rank that takes most, on its device and on the host
};

// The memory of a launch of this config on so many ranks. Throws what `train` would refuse before its first step,
// whatever the memory. Reads the data's headers; prints nothing.
LaunchMemory foresee_memory(const CheckOptions& options);

// Throws what `train` of this config on so many ranks would refuse before its first step, and MemoryError where its
// memory, as far as it can be foretold (parallel.split = "auto" is not), exceeds the limit of a rank or a host.
// `beside`: such launches on a host at the same time. Reads the data's headers; prints nothing.
Foreseen foresee_launch(const CheckOptions& options, int beside = 1);

}  // namespace echelon::cli
