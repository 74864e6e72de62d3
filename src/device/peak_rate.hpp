// The rates that a device reaches at best: of large matrix products, of which reports give the share that a step
// reaches, and of its memory.
#pragma once

#include "device/device.hpp"

namespace echelon::inline device {

// In FLOP/s, a multiply-add being 2; the best of several sizes. `activations`: dtype of the factors, kept as `stored`.
// Takes up to some seconds of a slow device. Of the sizes for which there is memory; NaN where there is none for
// three matrices of 128 x 128.
double peak_flops(Device& device, DType activations, DType stored);

// In bytes/s, read and written together, of a vector operation on more than caches hold; some milliseconds. MemoryError
// where they do not fit.
double memory_bytes_per_s(Device& device, DType stored);

}  // namespace echelon::inline device
