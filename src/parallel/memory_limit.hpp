// SPDX-License-Identifier: Apache-2.0
// Refuses a launch whose predicted memory exceeds the limit of a rank or the memory of a host.
#pragma once

#include <vector>

#include "config/schema.hpp"
#include "parallel/footprint.hpp"

namespace echelon::inline parallel {

// Physical memory of this machine in bytes.
double machine_memory_bytes();

// Throws MemoryError if a rank needs more than device.memory_limit_mb or, without a limit, if the ranks of one host
// need more than this machine has. `ranks`: those of the fullest host. A config with a limit may be for another
// machine, so this machine's memory is not compared; nor is it for GPUs, whose memory is not known here.
void require_memory(const Config& config, const std::vector<Footprint>& ranks);

}  // namespace echelon::inline parallel
