// SPDX-License-Identifier: Apache-2.0
// Sums over the GPUs of all ranks by NCCL (device/device_allreduce.hpp), from libnccl.so.2, which is opened at its
// first use: without it everything else works.
#pragma once

#include <memory>
#include <string>

#include "cuda/context.hpp"
#include "device/device_allreduce.hpp"

namespace echelon::cuda {

// Empty if NCCL can be used; else the missing part.
std::string nccl_problem();
// EnvironmentError with NCCL's message if it fails.
std::unique_ptr<DeviceAllreduce> make_nccl(const Context& context, const DeviceGroup& group);

}  // namespace echelon::cuda
