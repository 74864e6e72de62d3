// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels; formulas in device/ops/lrn.hpp. T is any of
// ECHELON_CUDA_TYPES; `e` describes the channels of dims in memory.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/types.hpp"
#include "device/ops/lrn.hpp"

namespace echelon::cuda {

template <class T>
void lrn_forward(const LrnDims& d, const ChannelExtents& e, const T* x, T* y, cudaStream_t stream);
// scratch: one Wide<T> per element of x.
template <class T>
void lrn_backward(const LrnDims& d, const ChannelExtents& e, const T* x, const T* dy, T* dx, bool add, Wide<T>* scratch,
                  cudaStream_t stream);

}  // namespace echelon::cuda
