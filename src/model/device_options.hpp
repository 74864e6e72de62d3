// What the config's table [device] asks of a device, in the device's own terms.
#pragma once

#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon::inline model {

// `threads`: of one op. The GPU's index is 0.
DeviceOptions device_options(const DeviceConfig& config, int threads);

}  // namespace echelon::inline model
