// What discrete devices of one process make of a library's sums: ranks are threads, which meet in memory.
#pragma once

#include <memory>

#include "device/device_allreduce.hpp"
#include "tests/support/late_streams.hpp"

namespace echelon::test {

// Sums in the order of ranks, on a stream of their own beside the ops (late_ops.hpp). All ranks' n-th sums must name
// the same slot and length: anything else fails, where a real library would hang. `stuck`: no sum ever ends.
std::unique_ptr<DeviceAllreduce> make_discrete_sums(const DeviceGroup& group, std::shared_ptr<LateStreams> streams,
                                                    bool stuck);

}  // namespace echelon::test
