// The options of a device from the config's table [device].
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.hpp"
#include "device/device.hpp"
#include "device/paced/step_pace.hpp"

namespace echelon::inline model {

// `threads`: host threads of one op. The index of the GPU is 0 (job/launch.hpp sets it by rank). EnvironmentError where
// the config asks for bf16 on a CPU without instructions for it, not emulated.
DeviceOptions device_options(const DeviceConfig& config, int threads);

// The pace of a rank; none where pace_ms is 0. Reads paced_table: throws as read_paced_table does.
std::optional<StepPaceOptions> pace_options(const DeviceConfig& config, std::uint64_t seed, int rank);

}  // namespace echelon::inline model
