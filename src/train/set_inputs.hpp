// A batch of the loader into the inputs of a program.
#pragma once

#include <cstdint>

#include "data/loader.hpp"
#include "device/device.hpp"
#include "model/program.hpp"

namespace echelon::inline train {

// Samples [first, first + program.batch()) of the batch, as far as the program takes them; returns when the batch may
// be reused. On a device of its own: one copy an input, in stream order.
void set_inputs(Device& device, const Program& program, const Batch& batch, std::int64_t first = 0, int in_flight = 0);

}  // namespace echelon::inline train
