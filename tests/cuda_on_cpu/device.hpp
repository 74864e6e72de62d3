// SPDX-License-Identifier: Apache-2.0
// The ops, updates, vector operations and codecs of cuda/ops, with the kernels on the CPU, as a device.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::on_cpu {

// Convolutions are the plain loops of kernels/direct_conv.cu; recurrent layers, which belong to cuDNN, are missing.
std::unique_ptr<Device> make_device();

}  // namespace echelon::on_cpu
