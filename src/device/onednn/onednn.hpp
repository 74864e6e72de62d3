// The CPU fast path: oneDNN for convolution and matrix products, own vectorised loops for the rest. f32, and bf16 where
// the processor multiplies it (AVX512_BF16) or DeviceOptions::emulate_halves asks for f32 on rounded values.
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::inline device {

// Throws EnvironmentError where the CPU lacks AVX2 or FMA, which every host body is compiled for.
std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options);
// Why bf16 is not computed on this CPU, and what to write instead.
std::string halves_problem();
// The same of device.tf32.
std::string bf16_products_problem();

}  // namespace echelon::inline device
