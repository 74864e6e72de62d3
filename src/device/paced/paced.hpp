// SPDX-License-Identifier: Apache-2.0
// The paced device: ops sleep for their tabled time and compute nothing, so that many ranks fit on few cores. For
// studies of scaling, bubbles and stragglers; `computes()` is false, and every record of such a run is marked as
// paced.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::inline device {

// An op takes the seconds that options.paced_table gives for its text or, without a row, flops / paced_gflops + traffic
// / paced_gb_per_s. Updates take the time of their traffic. Memory and vector operations are real ones of the host,
// because an exchange is not paced. EnvironmentError if the table cannot be read, ConfigError if its content is not a
// table.
std::unique_ptr<Device> make_paced_device(const DeviceOptions& options);

}  // namespace echelon::inline device
