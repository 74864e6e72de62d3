// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/head_pointers.hpp"

#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

void write_head_pointers(const HeadTensors& tensors, std::int64_t N, std::int64_t heads, const void** pointers,
                         cudaStream_t stream) {
  each(tensors.count * N * heads, stream, [=] __device__(std::int64_t i) {
    const HeadPlaces& places = tensors.of[i / (N * heads)];
    const std::int64_t n = i / heads % N, h = i % heads;
    pointers[i] = static_cast<const char*>(places.data) + n * places.sample_bytes + h * places.head_bytes;
  });
}

}  // namespace echelon::cuda
