// The options of a device from the config's table [device].
#pragma once

#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon::inline model {

// `threads`: host threads of one op. The index of the GPU is 0 (job/launch.hpp sets it by rank).
DeviceOptions device_options(const DeviceConfig& config, int threads);

}  // namespace echelon::inline model
