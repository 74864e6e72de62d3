// Launches over single elements: activations, sums of two tensors, biases, layouts. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include "device/op_spec.hpp"

namespace echelon::cuda {

template <class T>
void activation_forward(Activation function, const T* x, T* y, std::int64_t n, cudaStream_t stream);
// dx = dy * f'(x), told from y = f(x); gelu's from x itself.
template <class T>
void activation_backward(Activation function, const T* y, const T* dy, T* dx, std::int64_t n, bool add,
                         cudaStream_t stream);

template <class T>
void add_tensors(const T* a, const T* b, T* y, std::int64_t n, cudaStream_t stream);

// y[n, k, i] += b[k]; y (N, K, elems).
template <class T>
void add_bias(T* y, const T* b, std::int64_t N, std::int64_t K, std::int64_t elems, cudaStream_t stream);
// db[k] (+)= sum over n, i of dy[n, k, i]. scratch: channel_scratch_bytes(N, K, 1).
template <class T>
void bias_gradient(const T* dy, T* db, std::int64_t N, std::int64_t K, std::int64_t elems, bool add, void* scratch,
                   cudaStream_t stream);

// The same values in another layout; channels that pad a block are written as zero. Shapes of another rank than 4 are
// plain whatever their layout says.
template <class T>
void reorder(const T* x, Layout from, T* y, Layout to, const Shape& shape, cudaStream_t stream);

}  // namespace echelon::cuda
