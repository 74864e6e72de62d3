// SPDX-License-Identifier: Apache-2.0
// Kernels of sequences and of losses of numbers. The order of reductions depends only on the extents. T is any of
// ECHELON_CUDA_TYPES, except that losses are of float or double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/types.hpp"
#include "device/ops/attention.hpp"
#include "device/ops/sequence_pool.hpp"
#include "device/ops/value_loss.hpp"

namespace echelon::cuda {

// rows (elems, 3): weighted loss, weight if a logistic prediction is right, weight. Target: T or std::int32_t.
template <class T, class Target>
void value_loss_rows(const ValueLossDims& d, const T* x, const Target* targets, const T* weights, double* rows,
                     cudaStream_t stream);
template <class T, class Target>
void value_loss_backward(const ValueLossDims& d, const T* x, const Target* targets, const T* weights, double scale,
                         T* dx, bool add, cudaStream_t stream);

// `lengths` may be null: every sequence is T long.
template <class T>
void sequence_pool_forward(const SequencePoolDims& d, const T* x, const std::int32_t* lengths, T* y,
                           cudaStream_t stream);
template <class T>
void sequence_pool_backward(const SequencePoolDims& d, const T* dy, const std::int32_t* lengths, T* dx, bool add,
                            cudaStream_t stream);

// y (N, elems) = x + w(elems); dw (elems) = sum of dy over N.
template <class T>
void broadcast_add(std::int64_t N, std::int64_t elems, const T* x, const Wide<T>* w, T* y, cudaStream_t stream);
template <class T>
void sum_samples(std::int64_t N, std::int64_t elems, const T* dy, Wide<T>* dw, bool add, cudaStream_t stream);

// Rows of attention: p (N, heads, T, S) from products, over the positions that a query attends to; all others become 0.
// p and products may share memory.
template <class T>
void attention_softmax(const AttentionDims& d, const std::int32_t* lengths, const Wide<T>* products, T* p,
                       cudaStream_t stream);
// ds = scale * p * (da - sum over s of p * da). ds and da may share memory.
template <class T>
void attention_softmax_backward(const AttentionDims& d, const T* p, double scale, const Wide<T>* da, T* ds,
                                cudaStream_t stream);

}  // namespace echelon::cuda
