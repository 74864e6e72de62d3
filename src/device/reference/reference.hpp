// SPDX-License-Identifier: Apache-2.0
// The reference device: plain loops, sums in double, f32 and f64. All other devices are tested against it.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::inline device {

// Uses one thread whatever the options are: its results depend on its inputs only.
std::unique_ptr<Device> make_reference_device(const DeviceOptions& options);

}  // namespace echelon::inline device
