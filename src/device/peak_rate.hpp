// SPDX-License-Identifier: Apache-2.0
// The peak rates of a device: of large matrix products, for the fraction of peak that reports give, and of its memory.
#pragma once

#include "device/device.hpp"

namespace echelon::inline device {

// Returns FLOP/s, counting a multiply-add as 2; the best of those sizes for which there is memory. `activations` is the
// dtype of the factors, which are stored as `stored`. Takes up to some seconds on a slow device. NaN if there is no
// memory for three matrices of 128 x 128.
double peak_flops(Device& device, DType activations, DType stored);

// Returns bytes/s, reads and writes together, of a vector operation that exceeds the caches; takes some milliseconds.
// MemoryError if there is not enough memory.
double memory_bytes_per_s(Device& device, DType stored);

}  // namespace echelon::inline device
