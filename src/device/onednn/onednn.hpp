// SPDX-License-Identifier: Apache-2.0
// The CPU fast path: oneDNN for convolutions and matrix products, our own vectorised loops for the rest. f32, and bf16
// if the processor multiplies it (AVX512_BF16) or if DeviceOptions::emulate_halves asks for f32 on rounded values.
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::inline device {

// Throws EnvironmentError if the CPU lacks instructions that host code is compiled for (base/processor.hpp).
std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options);
// The reason why this CPU does not compute bf16, and the setting to use instead.
std::string halves_problem();
// The same for device.tf32.
std::string bf16_products_problem();

}  // namespace echelon::inline device
