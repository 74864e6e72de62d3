// Local response normalisation across channels; formulas in device/op_spec.hpp. T is any of
// ECHELON_CUDA_TYPES; `e` says where the channels of dims lie.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/types.hpp"
#include "device/op_spec.hpp"

namespace echelon::cuda {

template <class T>
void lrn_forward(const LrnDims& d, const ChannelExtents& e, const T* x, T* y, cudaStream_t stream);
// scratch: as many Wide<T> as x has elements.
template <class T>
void lrn_backward(const LrnDims& d, const ChannelExtents& e, const T* x, const T* dy, T* dx, bool add, Wide<T>* scratch,
                  cudaStream_t stream);

}  // namespace echelon::cuda
