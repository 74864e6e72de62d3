#include "cuda/kernels/dropout.hpp"

#include "base/hash_rng.hpp"
#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

template <class T>
void dropout(std::uint64_t key, double rate, const T* x, const std::int32_t* ids, T* y, std::int64_t N,
             std::int64_t elems, bool add, cudaStream_t stream) {
  const T factor = static_cast<T>(1 / (1 - rate));
  each(N * elems, stream, [=] __device__(std::int64_t i) {
    const HashRng rng = HashRng(key).at(static_cast<std::uint32_t>(ids[i / elems]));
    const bool stays = rng.uniform(static_cast<std::uint64_t>(i % elems)) >= rate;
    y[i] = (add ? y[i] : T(0)) + (stays ? x[i] * factor : T(0));
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                         \
  template void dropout<T>(std::uint64_t, double, const T*, const std::int32_t*, T*, std::int64_t, std::int64_t, bool, \
                           cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
