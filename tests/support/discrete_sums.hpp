// SPDX-License-Identifier: Apache-2.0
// Stands in for a library's sums between discrete devices of one process; ranks are threads that meet in memory.
#pragma once

#include <memory>

#include "device/device_allreduce.hpp"
#include "tests/support/late_streams.hpp"

namespace echelon::test {

// Sums in the order of ranks, on a stream beside the ops' (late_ops.hpp). The n-th sum of every rank must name the same
// slot and length; anything else fails, where a real library would hang. `stuck`: no sum ever ends.
std::unique_ptr<DeviceAllreduce> make_discrete_sums(const DeviceGroup& group, std::shared_ptr<LateStreams> streams,
                                                    bool stuck);

}  // namespace echelon::test
