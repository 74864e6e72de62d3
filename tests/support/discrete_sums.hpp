// What discrete devices of one process make of a library's sums: ranks are threads, which meet in memory.
#pragma once

#include <memory>

#include "device/device_allreduce.hpp"

namespace echelon::test {

// Sums in the order of ranks. A sum is written to its place only where it is joined. All ranks' n-th sums must name the
// same slot and length: anything else fails, where a real library would hang.
std::unique_ptr<DeviceAllreduce> make_discrete_sums(const DeviceGroup& group);

}  // namespace echelon::test
