// SPDX-License-Identifier: Apache-2.0
// The CPU fast path: oneDNN for convolutions and matrix products, our own vectorised loops for the rest. f32, and
// halves: bf16 by AVX512_BF16, f16 by AMX_FP16 and oneDNN 3, or both by f32 on rounded values
// (DeviceOptions::emulate_halves).
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::inline device {

// Throws EnvironmentError if the CPU lacks instructions that host code is compiled for (base/processor.hpp).
std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options);
// Whether this CPU, with the library, multiplies halves of this type.
bool multiplies_halves(DType half);
// The reason why it does not, and the setting to use instead.
std::string halves_problem(DType half);
// The same for device.tf32.
std::string bf16_products_problem();

}  // namespace echelon::inline device
