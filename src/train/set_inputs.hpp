// SPDX-License-Identifier: Apache-2.0
// A batch of the loader into the inputs of a program.
#pragma once

#include <cstdint>

#include "data/loader.hpp"
#include "device/device.hpp"
#include "device/upload.hpp"
#include "model/program.hpp"

namespace echelon::inline train {

// Samples [first, first + program.batch()) of the batch, as far as the program takes them; returns when the batch may
// be reused. On a device of its own: one copy an input, in stream order, each waited for.
void set_inputs(Device& device, const Program& program, const Batch& batch, std::int64_t first = 0, int in_flight = 0);
// The same beside what the device is doing. `upload` holds at least program.input_bytes().
void set_inputs(Upload& upload, const Program& program, const Batch& batch, std::int64_t first, int in_flight);

// Clears the recurrent states of this slot for those of the same samples with which a series begins.
void begin_series(Program& program, const Batch& batch, std::int64_t first = 0, int slot = 0);

}  // namespace echelon::inline train
