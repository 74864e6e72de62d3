// SPDX-License-Identifier: Apache-2.0
// The reference device with recording: while it records, an op keeps its arguments instead of running; a replay runs it
// with exactly these, as a captured launch of a GPU would.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::test {

struct RecordingCounts {
  int recorded = 0, replayed = 0;  // numbers of recordings
  int ops = 0;                     // ops that ran one by one
};

// Recurrent layers declare that they cannot be recorded, and throw if they are. `counts` must outlive the device.
std::unique_ptr<Device> make_recording_device(RecordingCounts& counts);

}  // namespace echelon::test
