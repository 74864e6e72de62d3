// SPDX-License-Identifier: Apache-2.0
// Launches of softmax cross-entropy over parts of the classes; formulas in device/ops/softmax_part.hpp. T is float or
// double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/ops/softmax_part.hpp"

namespace echelon::cuda {

template <class T>
void softmax_part(const SoftmaxPartDims& d, const T* logits, const std::int32_t* labels, T* partials,
                  cudaStream_t stream);
// `rows`: scratch of (N, 3) doubles.
template <class T>
void softmax_join(const SoftmaxPartDims& d, const T* partials, const T* weights, T* norms, double* rows, double* sums,
                  bool add, cudaStream_t stream);
template <class T>
void softmax_part_backward(const SoftmaxPartDims& d, const T* logits, const T* norms, const std::int32_t* labels,
                           const T* weights, double scale, T* dlogits, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
