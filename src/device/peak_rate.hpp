// The rate of large matrix products on a device: the practical upper bound for ops, of which reports give the share
// that a step reaches.
#pragma once

#include "device/device.hpp"

namespace echelon::inline device {

// In FLOP/s, a multiply-add being 2; the best of several sizes. `activations`: dtype of the factors, kept as `stored`.
// Takes up to some seconds of a slow device. MemoryError where three matrices do not fit.
double peak_flops(Device& device, DType activations, DType stored);

}  // namespace echelon::inline device
