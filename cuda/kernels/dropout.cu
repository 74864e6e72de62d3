// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/dropout.hpp"

#include "base/hash_rng.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"

namespace echelon::cuda {

template <class T>
void dropout(std::uint64_t key, double rate, const T* x, const std::int32_t* ids, T* y, std::int64_t N,
             const Place& place, std::int64_t first, std::int64_t plane, bool add, cudaStream_t stream) {
  const auto factor = static_cast<Wide<T>>(1 / (1 - rate));
  each(N * place.C * place.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = place.spot(index);
    const HashRng rng = HashRng(key).at(static_cast<std::uint32_t>(ids[spot.n]));
    const bool stays = rng.uniform(static_cast<std::uint64_t>(first + spot.c * plane + spot.i)) >= rate;
    put(y + index, stays ? wide(x[index]) * factor : Wide<T>(0), add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                   \
  template void dropout<T>(std::uint64_t, double, const T*, const std::int32_t*, T*, std::int64_t, const Place&, \
                           std::int64_t, std::int64_t, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
