// SPDX-License-Identifier: Apache-2.0
// Launches of upsampling. T is any of ECHELON_CUDA_TYPES; x, y and their gradients all plain or all channels_last.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/types.hpp"
#include "device/ops/upsample.hpp"

namespace echelon::cuda {

template <class T>
void upsample_forward(const UpsampleDims& dims, Layout layout, const T* x, T* y, cudaStream_t stream);
// Each dx sums over the outputs that read it, in their order.
template <class T>
void upsample_backward(const UpsampleDims& dims, Layout layout, const T* dy, T* dx, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
