// SPDX-License-Identifier: Apache-2.0
// Dropout by hashes of (key, sample, element); device/ops/dropout.hpp has the formula. T is any of ECHELON_CUDA_TYPES.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/place.hpp"
#include "cuda/types.hpp"

namespace echelon::cuda {

// y (+)= x / (1 - rate) or 0; elements are counted from `first`, with `plane` of them per channel; x and y (N, C,
// elems) in one layout, plain or channels_last; ids (N).
template <class T>
void dropout(std::uint64_t key, double rate, const T* x, const std::int32_t* ids, T* y, std::int64_t N,
             const Place& place, std::int64_t first, std::int64_t plane, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
