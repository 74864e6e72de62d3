// The reference device: plain loops, sums in double, f32 and f64. The oracle that every other body is tested against.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::inline device {

// One thread whatever the options: its results depend on its inputs alone.
std::unique_ptr<Device> make_reference_device(const DeviceOptions& options);

}  // namespace echelon::inline device
