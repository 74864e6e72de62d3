// SPDX-License-Identifier: Apache-2.0
// The options of a device from the config's table [device].
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.hpp"
#include "device/device.hpp"
#include "device/paced/step_pace.hpp"

namespace echelon::inline model {

// `threads`: host threads of one op. The index of the GPU is 0 (job/launch.hpp sets it by rank). EnvironmentError if
// the config asks for bf16, not emulated, on a CPU without instructions for it.
DeviceOptions device_options(const DeviceConfig& config, int threads);

// The pace of a rank; none if pace_ms is 0. Reads paced_table and throws what read_paced_table throws.
std::optional<StepPaceOptions> pace_options(const DeviceConfig& config, std::uint64_t seed, int rank);

}  // namespace echelon::inline model
