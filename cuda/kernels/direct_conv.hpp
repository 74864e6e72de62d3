// Convolution by plain sums, one output a thread or block: for shapes that the library has no deterministic algorithm
// for, or that its 32-bit extents cannot name. Slow and exact; sums in double. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include "device/op_spec.hpp"

namespace echelon::cuda {

template <class T>
void direct_conv_forward(const ConvDims& dims, const T* x, const T* w, T* y, cudaStream_t stream);
template <class T>
void direct_conv_backward_data(const ConvDims& dims, const T* dy, const T* w, T* dx, bool add, cudaStream_t stream);
template <class T>
void direct_conv_backward_weights(const ConvDims& dims, const T* x, const T* dy, T* dw, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
