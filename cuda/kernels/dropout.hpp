// Dropout by hashes of (key, sample, element); device/op_spec.hpp says which. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace echelon::cuda {

// y (+)= x / (1 - rate) or 0; x and y (N, elems), ids (N).
template <class T>
void dropout(std::uint64_t key, double rate, const T* x, const std::int32_t* ids, T* y, std::int64_t N,
             std::int64_t elems, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
