// The paced device: ops take their tabled time by sleeping and compute nothing, so that many ranks fit on few cores.
// For studies of scaling, bubbles and stragglers; `computes()` is false, and every record of such a run is marked as
// paced.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::inline device {

// An op takes the seconds that options.paced_table gives for its text; without a row, flops / paced_gflops + traffic /
// paced_gb_per_s. Updates take their traffic. Memory and vector operations are the host's real ones, because an
// exchange is not paced. A table that cannot be read is an EnvironmentError, one that is no table a ConfigError.
std::unique_ptr<Device> make_paced_device(const DeviceOptions& options);

}  // namespace echelon::inline device
