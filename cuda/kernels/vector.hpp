// SPDX-License-Identifier: Apache-2.0
// Launches of the vector operations. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/delay_compensation.hpp"

namespace echelon::cuda {

template <class T>
void vector_fill(T* dst, T value, std::size_t n, cudaStream_t stream);
template <class T>
void vector_add(T* dst, const T* src, std::size_t n, cudaStream_t stream);
template <class T>
void vector_scale(T* dst, T factor, std::size_t n, cudaStream_t stream);
template <class T>
void vector_axpy(T* dst, T factor, const T* src, std::size_t n, cudaStream_t stream);

// Applies the compensation to each of n values.
template <class T>
void vector_compensate(const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n,
                       cudaStream_t stream);

// One partial result per block, which the host combines in order: kReduceBlocks of 8 bytes.
inline constexpr int kReduceBlocks = 512;
template <class T>
void partial_sum_squares(const T* src, std::size_t n, double* partials, cudaStream_t stream);
// Largest magnitudes as bit patterns: among positive doubles the larger one has the larger bit pattern, inf is above
// every number and NaN above inf.
template <class T>
void partial_max_abs(const T* src, std::size_t n, std::uint64_t* partials, cudaStream_t stream);
template <class T>
void partial_not_finite(const T* src, std::size_t n, std::uint64_t* partials, cudaStream_t stream);

}  // namespace echelon::cuda
