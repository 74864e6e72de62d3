// SPDX-License-Identifier: Apache-2.0
// The `reference` device as the host sees a card: its memory faults when the host touches it, and enqueued work happens
// later, in stream order, at random moments (late_streams.hpp). It has memory, copies, vector operations and updates,
// but builds no ops.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::test {

std::unique_ptr<Device> make_far_device();

}  // namespace echelon::test
