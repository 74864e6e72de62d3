// What ranks will hold, for `check`: as a line, and beside what a rank and a host may hold.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

// One line, without a heading: the memory of a rank with the whole model.
std::string memory_text(const Config& config, const Footprint& memory);

// Bytes of memory of this machine.
double machine_memory_bytes();

// MemoryError where a rank would take more than device.memory_limit_mb, or where all ranks of one host would take more
// than this machine has; `ranks`: of the fullest host. Nothing is known of hosts where GPUs compute. With a limit the
// ranks are taken to be meant for another machine: what this one has is not looked at.
void require_memory(const Config& config, const std::vector<Footprint>& ranks);

}  // namespace echelon::cli
