// A batch of the loader into the inputs of a program.
#pragma once

#include <cstdint>

#include "data/loader.hpp"
#include "device/device.hpp"
#include "model/program.hpp"

namespace echelon {

// Samples [first, first + program.batch()) of the batch, in the program's dtype; returns when the batch may be reused.
void feed(Device& device, const Program& program, const Batch& batch, std::int64_t first = 0);

}  // namespace echelon
