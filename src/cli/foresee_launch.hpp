// SPDX-License-Identifier: Apache-2.0
// Predicts, without MPI, whether a launch can run.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/options.hpp"
#include "config/batch_plan.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

struct LaunchMemory {
  Config config;
  std::int64_t samples = 0;         // samples of the training set
  std::int64_t steps = 0;           // steps of the run; not filled for parallel.split = "auto"
  BatchPlan batch;                  // not filled for parallel.split = "auto"
  std::vector<Footprint> of_ranks;  // on the fullest host; empty for parallel.split = "auto", which is not predicted
};

// A value of 0 is not known (parallel.split = "auto").
struct Foreseen {
  std::int64_t steps = 0;   // steps of the run
  double memory_bytes = 0;  // rank that needs most: on its device and on the host
};

// Predicts the memory of a launch of this config on that many ranks. Throws whatever `train` would refuse before its
// first step, apart from memory. Reads the headers of the data and prints nothing.
LaunchMemory foresee_memory(const CheckOptions& options);

// Throws whatever `train` of this config would refuse before its first step, and MemoryError if the predicted memory
// exceeds the limit of a rank or a host (parallel.split = "auto" is not predicted). `beside`: number of such launches
// on a host at the same time. Reads the headers of the data and prints nothing.
Foreseen foresee_launch(const CheckOptions& options, int beside = 1);

}  // namespace echelon::cli
