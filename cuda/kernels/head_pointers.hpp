// SPDX-License-Identifier: Apache-2.0
// Writes on the device the addresses of the matrices of a batched cuBLAS product: a step uploads nothing, and a
// captured graph writes them again at every launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace echelon::cuda {

// Matrix (n, h) of a tensor begins n * sample_bytes + h * head_bytes behind `data`.
struct HeadPlaces {
  const void* data;
  std::int64_t sample_bytes, head_bytes;
};
struct HeadTensors {
  static constexpr int kMost = 10;
  HeadPlaces of[kMost];
  int count = 0;
};

// pointers (count, N, heads).
void write_head_pointers(const HeadTensors& tensors, std::int64_t N, std::int64_t heads, const void** pointers,
                         cudaStream_t stream);

}  // namespace echelon::cuda
