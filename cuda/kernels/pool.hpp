// Launches of pooling. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include "device/op_spec.hpp"

namespace echelon::cuda {

// x (N, C, H, W) -> y (N, C, P, Q). max: `positions` (N, C, P, Q) receives h*W + w of each maximum, the first among
// equals, a NaN if there is one; may be null.
template <class T>
void pool_forward(const PoolDims& dims, const T* x, T* y, std::int32_t* positions, cudaStream_t stream);
// Each dx gathers from the windows that hold it, in the order of the windows.
template <class T>
void pool_backward(const PoolDims& dims, const T* dy, const std::int32_t* positions, T* dx, bool add,
                   cudaStream_t stream);

}  // namespace echelon::cuda
