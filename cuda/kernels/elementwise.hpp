// SPDX-License-Identifier: Apache-2.0
// Launches of elementwise kernels: activations, sums of two tensors, biases, layouts. T is any of ECHELON_CUDA_TYPES;
// biases are Wide<T>.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/types.hpp"
#include "device/ops/activation.hpp"

namespace echelon::cuda {

template <class T>
void activation_forward(const ActivationDims& d, const T* x, T* y, std::int64_t n, cudaStream_t stream);
// dx = dy * f'(x), computed from y = f(x); for gelu from x itself.
template <class T>
void activation_backward(const ActivationDims& d, const T* y, const T* dy, T* dx, std::int64_t n, bool add,
                         cudaStream_t stream);

// y = a + b; with relu max(0, a + b).
template <class T>
void add_tensors(const T* a, const T* b, T* y, std::int64_t n, bool relu, cudaStream_t stream);
// y = a + b where mask > 0.
template <class T>
void add_masked(const T* mask, const T* a, const T* b, T* y, std::int64_t n, cudaStream_t stream);

// y[n, k, i] += b[k].
template <class T>
void add_bias(T* y, const Wide<T>* b, const ChannelExtents& e, cudaStream_t stream);
// db[k] (+)= sum over n, i of dy[n, k, i]. scratch: channel_scratch_bytes(e, 1).
template <class T>
void bias_gradient(const T* dy, Wide<T>* db, const ChannelExtents& e, bool add, void* scratch, cudaStream_t stream);

// y (+)= the same values in another layout and type; channels that pad a block are written as zero. Shapes with a rank
// other than 4 are plain whatever their layout.
template <class X, class Y>
void reorder(const X* x, Layout from, Y* y, Layout to, const Shape& shape, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
