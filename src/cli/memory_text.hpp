// SPDX-License-Identifier: Apache-2.0
// The predicted memory of ranks for `check`: as text, and checked against the limits of a rank and of a host.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "data/read_memory.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

// Returns one line without its label: the memory of a rank that holds the whole model, by purpose, and the memory for
// reading its data, if known.
std::string memory_text(const Config& config, const Footprint& memory, const ReadMemory* reading = nullptr);

// Physical memory of this machine in bytes.
double machine_memory_bytes();

// Throws MemoryError if a rank needs more than device.memory_limit_mb or, without a limit, if the ranks of one host
// need more than this machine has. `ranks`: those of the fullest host. A config with a limit may be for another
// machine, so this machine's memory is not compared; nor is it for GPUs, whose memory is not known here.
void require_memory(const Config& config, const std::vector<Footprint>& ranks);

}  // namespace echelon::cli
