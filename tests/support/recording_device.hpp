// The reference device, recording: while it records, an op keeps what it was told instead of running, and replays with
// exactly that, as a captured launch of a GPU would.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::test {

struct RecordingCounts {
  int recorded = 0, replayed = 0;  // recordings
  int ops = 0;                     // that ran one by one
};

// Recurrent layers say that they cannot be recorded, and throw where they are. `counts` must outlive the device.
std::unique_ptr<Device> make_recording_device(RecordingCounts& counts);

}  // namespace echelon::test
