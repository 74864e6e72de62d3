// Deterministic sums over a channel: see channel_sums.hpp.
#pragma once

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/each.cuh"

namespace echelon::cuda {

// Grid (C, splits). partial (splits, C, kSums).
template <int kSums, class Terms>
__global__ void __launch_bounds__(kThreads) channel_partials_kernel(double* partial, ChannelExtents e, Terms terms) {
  const std::int64_t c = blockIdx.x;
  double sums[kSums] = {};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; n < e.N; n += step)
    for (std::int64_t i = threadIdx.x; i < e.elems; i += blockDim.x) terms(c, (n * e.C + c) * e.elems + i, sums);
  for (int s = 0; s < kSums; ++s) {
    const double sum = block_reduce(sums[s], Plus{});
    if (threadIdx.x == 0 && threadIdx.y == 0) partial[(blockIdx.y * e.C + c) * kSums + s] = sum;
  }
}

// Images of one element: grid (columns of channels, splits), block (kColumns, rows), so that a warp reads one stretch.
template <int kSums, class Terms>
__global__ void __launch_bounds__(kThreads) row_partials_kernel(double* partial, ChannelExtents e, Terms terms) {
  constexpr int kRows = kThreads / kColumns;
  __shared__ double values[kSums][kRows][kColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  double sums[kSums] = {};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * kRows;
  if (c < e.C)
    for (std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * kRows + threadIdx.y; n < e.N; n += step)
      terms(c, n * e.C + c, sums);
  for (int s = 0; s < kSums; ++s) values[s][threadIdx.y][threadIdx.x] = sums[s];
  __syncthreads();
  if (threadIdx.y != 0 || c >= e.C) return;
  for (int s = 0; s < kSums; ++s) {
    double sum = 0;
    for (int row = 0; row < kRows; ++row) sum += values[s][row][threadIdx.x];
    partial[(blockIdx.y * e.C + c) * kSums + s] = sum;
  }
}

// `terms(c, index, sums)` adds one element's share; `finish(c, sums)` receives each channel's totals.
template <int kSums, class Terms, class Finish>
void channel_sums(const ChannelExtents& e, void* scratch, cudaStream_t stream, Terms terms, Finish finish) {
  double* partial = static_cast<double*>(scratch);
  const std::int64_t splits = channel_splits(e), C = e.C;
  if (e.elems == 1) {
    const dim3 grid(static_cast<unsigned>((C + kColumns - 1) / kColumns), static_cast<unsigned>(splits));
    launch(row_partials_kernel<kSums, Terms>, grid, dim3(kColumns, kThreads / kColumns), stream, partial, e, terms);
  } else {
    const dim3 grid(static_cast<unsigned>(C), static_cast<unsigned>(splits));
    launch(channel_partials_kernel<kSums, Terms>, grid, plane_block(e.elems), stream, partial, e, terms);
  }
  each(C, stream, [=] __device__(std::int64_t c) {
    double sums[kSums] = {};
    for (std::int64_t split = 0; split < splits; ++split)
      for (int s = 0; s < kSums; ++s) sums[s] += partial[(split * C + c) * kSums + s];
    finish(c, sums);
  });
}

}  // namespace echelon::cuda
