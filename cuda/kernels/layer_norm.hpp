// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of (rows, F); formulas in device/ops/layer_norm.hpp. T is any of ECHELON_CUDA_TYPES,
// parameters are Wide<T>; stats (2, rows): mean, 1/std.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/types.hpp"

namespace echelon::cuda {

struct RowExtents {
  std::int64_t rows, F;
};

template <class T>
void layer_norm_forward(const RowExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, double epsilon,
                        T* y, double* stats, cudaStream_t stream);
template <class T>
void layer_norm_backward(const RowExtents& e, const T* x, const T* dy, const double* stats, const Wide<T>* gamma, T* dx,
                         bool add, cudaStream_t stream);
// scratch: channel_scratch_bytes({rows, F, 1}, 2).
template <class T>
void layer_norm_parameter_gradients(const RowExtents& e, const T* x, const T* dy, const double* stats, Wide<T>* dgamma,
                                    bool add_gamma, Wide<T>* dbeta, bool add_beta, void* scratch, cudaStream_t stream);

}  // namespace echelon::cuda
