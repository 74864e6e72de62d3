// SPDX-License-Identifier: Apache-2.0
// Launches of pooling. T is any of ECHELON_CUDA_TYPES; x, y and their gradients all plain or all channels_last.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/types.hpp"
#include "device/ops/pool.hpp"

namespace echelon::cuda {

// x (N, C, in) -> y (N, C, out). max: `positions`, in the layout of y, receives (d*H + h)*W + w of each maximum (the
// first among equals; a NaN if there is one), or -1 if a ReLU cuts it off; may be null.
template <class T>
void pool_forward(const PoolDims& dims, Layout layout, const T* x, T* y, std::int32_t* positions, cudaStream_t stream);
// Each dx sums over the windows that contain it, in the order of the windows.
template <class T>
void pool_backward(const PoolDims& dims, Layout layout, const T* dy, const std::int32_t* positions, T* dx, bool add,
                   cudaStream_t stream);

}  // namespace echelon::cuda
