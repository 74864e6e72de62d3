// The CPU fast path: oneDNN for convolution and matrix products, own vectorised loops for the rest. f32 only.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace echelon::inline device {

// Throws EnvironmentError where the CPU lacks AVX2 or FMA, which every host body is compiled for.
std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options);

}  // namespace echelon::inline device
