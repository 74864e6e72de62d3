#include "cuda/kernels/channels.hpp"

#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

template <class T>
void move_channels(std::int64_t N, std::int64_t elems, std::int64_t count, const T* x, ChannelRange from, T* y,
                   ChannelRange to, bool add, cudaStream_t stream) {
  const std::int64_t row = count * elems;
  each(N * row, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / row, rest = i % row;
    const std::int64_t at = (n * to.C + to.first) * elems + rest;
    y[at] = (add ? y[at] : T(0)) + x[(n * from.C + from.first) * elems + rest];
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void move_channels<T>(std::int64_t, std::int64_t, std::int64_t, const T*, ChannelRange, T*, ChannelRange, \
                                 bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
