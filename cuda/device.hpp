// SPDX-License-Identifier: Apache-2.0
// The CUDA device: see device/device.hpp for the contract.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::cuda {

// options.index may exceed the visible GPUs: it is taken modulo their number.
std::unique_ptr<Device> make_device(const DeviceOptions& options);

}  // namespace echelon::cuda
