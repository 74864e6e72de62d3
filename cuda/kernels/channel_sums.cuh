// Deterministic sums over a channel: see channel_sums.hpp.
#pragma once

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

// Grid (C, splits). partial (splits, C, kSums).
template <int kSums, class Terms>
__global__ void __launch_bounds__(kThreads)
    channel_partials_kernel(double* partial, std::int64_t N, std::int64_t C, std::int64_t elems, Terms terms) {
  const std::int64_t c = blockIdx.x;
  double sums[kSums] = {};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; n < N; n += step)
    for (std::int64_t i = threadIdx.x; i < elems; i += blockDim.x) terms(c, (n * C + c) * elems + i, sums);
  for (int s = 0; s < kSums; ++s) {
    const double sum = block_reduce(sums[s], Plus{});
    if (threadIdx.x == 0 && threadIdx.y == 0) partial[(blockIdx.y * C + c) * kSums + s] = sum;
  }
}

// `terms(c, index, sums)` adds one element's share; `finish(c, sums)` receives each channel's totals.
template <int kSums, class Terms, class Finish>
void channel_sums(std::int64_t N, std::int64_t C, std::int64_t elems, void* scratch, cudaStream_t stream, Terms terms,
                  Finish finish) {
  double* partial = static_cast<double*>(scratch);
  const std::int64_t splits = channel_splits(N, C);
  const dim3 grid(static_cast<unsigned>(C), static_cast<unsigned>(splits));
  channel_partials_kernel<kSums><<<grid, plane_block(elems), 0, stream>>>(partial, N, C, elems, terms);
  each(C, stream, [=] __device__(std::int64_t c) {
    double sums[kSums] = {};
    for (std::int64_t split = 0; split < splits; ++split)
      for (int s = 0; s < kSums; ++s) sums[s] += partial[(split * C + c) * kSums + s];
    finish(c, sums);
  });
}

}  // namespace echelon::cuda
