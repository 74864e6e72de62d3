// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/vector.hpp"

namespace echelon::cuda {
namespace {

constexpr unsigned long long kInfinityBits = 0x7ff0000000000000ULL;

template <class T>
__device__ std::uint64_t magnitude_bits(T value) {
  return static_cast<std::uint64_t>(__double_as_longlong(static_cast<double>(value))) & 0x7fffffffffffffffULL;
}

struct Max {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a > b ? a : b; }
};

template <class V, class Value, class Combine>
__global__ void __launch_bounds__(kThreads) reduce_kernel(std::int64_t n, V* partials, Value value, Combine combine) {
  if (static_cast<std::int64_t>(blockIdx.x) * kThreads >= n) {  // the block has no values
    if (threadIdx.x == 0) partials[blockIdx.x] = 0;
    return;
  }
  V mine = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride)
    mine = combine(mine, value(i));
  const V result = block_reduce(mine, combine);
  if (threadIdx.x == 0) partials[blockIdx.x] = result;
}

template <class V, class Value, class Combine>
void reduce(std::size_t n, V* partials, cudaStream_t stream, Value value, Combine combine) {
  launch(reduce_kernel<V, Value, Combine>, kReduceBlocks, kThreads, stream, static_cast<std::int64_t>(n), partials,
         value, combine);
}

}  // namespace

template <class T>
void vector_fill(T* dst, T value, std::size_t n, cudaStream_t stream) {
  each(static_cast<std::int64_t>(n), stream, [=] __device__(std::int64_t i) { dst[i] = value; });
}

template <class T>
void vector_add(T* dst, const T* src, std::size_t n, cudaStream_t stream) {
  each(static_cast<std::int64_t>(n), stream, [=] __device__(std::int64_t i) { dst[i] += src[i]; });
}

template <class T>
void vector_scale(T* dst, T factor, std::size_t n, cudaStream_t stream) {
  each(static_cast<std::int64_t>(n), stream, [=] __device__(std::int64_t i) { dst[i] *= factor; });
}

template <class T>
void vector_axpy(T* dst, T factor, const T* src, std::size_t n, cudaStream_t stream) {
  each(static_cast<std::int64_t>(n), stream, [=] __device__(std::int64_t i) { dst[i] += factor * src[i]; });
}

template <class T>
void vector_compensate(const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n,
                       cudaStream_t stream) {
  how.adapts() ? each(static_cast<std::int64_t>(n), stream, Compensate<T, true>(how, update))
               : each(static_cast<std::int64_t>(n), stream, Compensate<T, false>(how, update));
}

template <class T>
void partial_sum_squares(const T* src, std::size_t n, double* partials, cudaStream_t stream) {
  reduce(
      n, partials, stream,
      [=] __device__(std::int64_t i) { return static_cast<double>(src[i]) * static_cast<double>(src[i]); }, Plus{});
}

template <class T>
void partial_max_abs(const T* src, std::size_t n, std::uint64_t* partials, cudaStream_t stream) {
  reduce(
      n, partials, stream, [=] __device__(std::int64_t i) { return magnitude_bits(src[i]); }, Max{});
}

template <class T>
void partial_not_finite(const T* src, std::size_t n, std::uint64_t* partials, cudaStream_t stream) {
  reduce(
      n, partials, stream,
      [=] __device__(std::int64_t i) { return std::uint64_t{magnitude_bits(src[i]) >= kInfinityBits ? 1u : 0u}; },
      Plus{});
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void vector_fill<T>(T*, T, std::size_t, cudaStream_t);                                                    \
  template void vector_add<T>(T*, const T*, std::size_t, cudaStream_t);                                              \
  template void vector_scale<T>(T*, T, std::size_t, cudaStream_t);                                                   \
  template void vector_axpy<T>(T*, T, const T*, std::size_t, cudaStream_t);                                          \
  template void vector_compensate<T>(const DelayCompensation&, const CompensatedUpdate&, std::size_t, cudaStream_t); \
  template void partial_sum_squares<T>(const T*, std::size_t, double*, cudaStream_t);                                \
  template void partial_max_abs<T>(const T*, std::size_t, std::uint64_t*, cudaStream_t);                             \
  template void partial_not_finite<T>(const T*, std::size_t, std::uint64_t*, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
