// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/channels.hpp"

#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"

namespace echelon::cuda {

template <class T>
void move_channels(std::int64_t N, std::int64_t elems, std::int64_t count, const T* x, ChannelRange from, T* y,
                   ChannelRange to, bool add, cudaStream_t stream) {
  const std::int64_t row = count * elems;
  each(N * row, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / row, rest = i % row;
    const std::int64_t at = (n * to.C + to.first) * elems + rest;
    put(y + at, wide(x[(n * from.C + from.first) * elems + rest]), add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void move_channels<T>(std::int64_t, std::int64_t, std::int64_t, const T*, ChannelRange, T*, ChannelRange, \
                                 bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
