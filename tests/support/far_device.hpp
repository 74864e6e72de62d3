// `reference` as the host sees a card: its memory faults when the host touches it, and what is enqueued happens later,
// in stream order, at moments drawn at random (late_streams.hpp). Memory, copies, vector operations and updates alone:
// it builds no ops.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::test {

std::unique_ptr<Device> make_far_device();

}  // namespace echelon::test
