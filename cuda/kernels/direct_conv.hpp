// SPDX-License-Identifier: Apache-2.0
// Convolution by plain sums, one output per thread or block, for shapes for which the library has no deterministic
// algorithm or that exceed its 32-bit extents. Slow and exact; sums are in double. T is any of ECHELON_CUDA_TYPES;
// images are all plain or all channels_last, weights and their gradients plain Wide<T>.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/types.hpp"
#include "device/ops/conv.hpp"

namespace echelon::cuda {

template <class T>
void direct_conv_forward(const ConvDims& dims, Layout layout, const T* x, const Wide<T>* w, T* y, cudaStream_t stream);
template <class T>
void direct_conv_backward_data(const ConvDims& dims, Layout layout, const T* dy, const Wide<T>* w, T* dx, bool add,
                               cudaStream_t stream);
template <class T>
void direct_conv_backward_weights(const ConvDims& dims, Layout layout, const T* x, const T* dy, Wide<T>* dw, bool add,
                                  cudaStream_t stream);

}  // namespace echelon::cuda
