// The predicted memory of ranks for `check`: as text, and compared with the limits of a rank and of a host.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "data/read_memory.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

// One line without its label: memory of a rank with the whole model, by purpose, and of reading its data, where that
// is known.
std::string memory_text(const Config& config, const Footprint& memory, const ReadMemory* reading = nullptr);

// Physical memory of this machine in bytes.
double machine_memory_bytes();

// MemoryError where a rank would take more than device.memory_limit_mb, or, without a limit, where the ranks of one
// host would take more than this machine has; `ranks`: those of the fullest host. With a limit the config may be for
// another machine, so the memory of this one is not compared; nor is it for GPUs, whose memory is not known here.
void require_memory(const Config& config, const std::vector<Footprint>& ranks);

}  // namespace echelon::cli
