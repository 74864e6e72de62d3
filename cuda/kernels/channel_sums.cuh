// SPDX-License-Identifier: Apache-2.0
// Deterministic sums over a channel: see channel_sums.hpp.
#pragma once

#include <type_traits>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/packs.cuh"

namespace echelon::cuda {

// The type in which the elements of a pack, or a pack's channels in several rows, are summed before they are added to a
// sum in double. For halves, whose products are exact in f32, it is f32.
template <class T>
using PackSum = std::conditional_t<kHalf<T>, float, double>;

// Grid (C, splits). partial (splits, C, kSums). A thread takes K consecutive elements, whether or not they can be
// loaded at once.
template <int kSums, int K, class T, int kCount, class Terms>
__global__ void __launch_bounds__(kThreads)
    channel_partials_kernel(double* partial, ChannelExtents e, Inputs<T, kCount> x, bool whole, Terms terms) {
  const std::int64_t c = blockIdx.x;
  const auto own = terms.of(c);
  double sums[kSums] = {};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; n < e.N; n += step)
    for (std::int64_t p = threadIdx.x; p < e.elems / K; p += blockDim.x) {
      Wide<T> in[kCount][K];
      for (int j = 0; j < kCount; ++j) load<K>(x.at[j] + (n * e.C + c) * e.elems + p * K, whole, in[j]);
      PackSum<T> some[kSums] = {};
      for (int k = 0; k < K; ++k) {
        Wide<T> values[kCount];
        for (int j = 0; j < kCount; ++j) values[j] = in[j][k];
        own(n, values, some);
      }
      for (int s = 0; s < kSums; ++s) sums[s] += some[s];
    }
  for (int s = 0; s < kSums; ++s) {
    const double sum = block_reduce(sums[s], Plus{});
    if (threadIdx.x == 0 && threadIdx.y == 0) partial[(blockIdx.y * e.C + c) * kSums + s] = sum;
  }
}

// For images of one element: grid (columns of packs, splits). The lanes of a warp read contiguous memory, and a thread
// loads kAhead rows before it adds them.
template <int kSums, int K, class T, int kCount, class Terms>
__global__ void __launch_bounds__(kThreads)
    row_partials_kernel(double* partial, ChannelExtents e, Inputs<T, kCount> x, bool whole, Terms terms) {
  constexpr int kAhead = 2, kRun = kHalf<T> ? 32 : kAhead;  // kRun: rows that are summed before the sum in double
  __shared__ double values_of[kSums][kThreads * K];
  const int width = static_cast<int>(blockDim.x) * K, thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * width, c = first + threadIdx.x * K;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  const std::int64_t end = c < e.C ? e.N : 0;
  decltype(terms.of(c)) own[K];
  for (int k = 0; k < K && end > 0; ++k) own[k] = terms.of(c + k);
  double sums[kSums][K] = {};
  std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  while (n < end) {
    PackSum<T> some[K][kSums] = {};
    for (int run = 0; run < kRun && n < end; run += kAhead, n += kAhead * step) {
      Pack<K, T> in[kAhead][kCount] = {};
      for (int ahead = 0; ahead < kAhead; ++ahead)
        if (const std::int64_t row = n + ahead * step; row < end)
          for (int j = 0; j < kCount; ++j) in[ahead][j] = fetch<K>(x.at[j] + row * e.C + c, whole);
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        const std::int64_t row = n + ahead * step;
        if (row >= end) break;
        for (int k = 0; k < K; ++k) {
          Wide<T> values[kCount];
          for (int j = 0; j < kCount; ++j) values[j] = wide(in[ahead][j].at[k]);
          own[k](row, values, some[k]);
        }
      }
    }
    for (int s = 0; s < kSums; ++s)
      for (int k = 0; k < K; ++k) sums[s][k] += some[k][s];
  }
  for (int s = 0; s < kSums; ++s)
    for (int k = 0; k < K; ++k) values_of[s][thread * K + k] = sums[s][k];
  __syncthreads();
  for (int i = thread; i < width; i += kThreads) {
    if (first + i >= e.C) continue;
    for (int s = 0; s < kSums; ++s) {
      double sum = 0;
      for (int row = 0; row < static_cast<int>(blockDim.y); ++row) sum += values_of[s][row * width + i];
      partial[(blockIdx.y * e.C + first + i) * kSums + s] = sum;
    }
  }
}

// Blocks of kEnds channels, with kThreads / kEnds threads per channel that share its splits.
inline constexpr int kEnds = 8;
template <int kSums, class Finish>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const double* partial, std::int64_t C, std::int64_t splits, Finish finish) {
  constexpr int kRows = kThreads / kEnds;
  __shared__ double values_of[kSums][kRows][kEnds];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kEnds + threadIdx.x;
  for (int s = 0; s < kSums; ++s) {
    double sum = 0;
    for (std::int64_t split = threadIdx.y; c < C && split < splits; split += kRows)
      sum += partial[(split * C + c) * kSums + s];
    values_of[s][threadIdx.y][threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.y != 0 || c >= C) return;
  double sums[kSums] = {};
  for (int s = 0; s < kSums; ++s)
    for (int row = 0; row < kRows; ++row) sums[s] += values_of[s][row][threadIdx.x];
  finish(c, sums);
}

template <int kSums, int K, class T, int kCount, class Terms>
void channel_partials(const ChannelExtents& e, const Inputs<T, kCount>& x, double* partial, cudaStream_t stream,
                      Terms terms) {
  const auto splits = static_cast<unsigned>(channel_splits(e));
  if (e.elems == 1) {
    const dim3 block = row_block(e.C / K), grid(grid_blocks(e.C / K, block.x, 1 << 30), splits);
    launch(row_partials_kernel<kSums, K, T, kCount, Terms>, grid, block, stream, partial, e, x, whole(x), terms);
  } else {
    const dim3 grid(static_cast<unsigned>(e.C), splits);
    launch(channel_partials_kernel<kSums, K, T, kCount, Terms>, grid, plane_block(e.elems / K), stream, partial, e, x,
           whole(x), terms);
  }
}

// `terms.of(c)` gathers the data of a channel; its (n, values, sums) adds one element's share, computed from the
// element's values in all inputs. `finish(c, sums)` receives each channel's totals. The order of the sums depends only
// on the extents, not on addresses.
template <int kSums, class T, int kCount, class Terms, class Finish>
void channel_sums(const ChannelExtents& e, const Inputs<T, kCount>& x, void* scratch, cudaStream_t stream, Terms terms,
                  Finish finish) {
  double* partial = static_cast<double*>(scratch);
  if ((e.elems == 1 ? e.C : e.elems) % kPack<T> == 0)
    channel_partials<kSums, kPack<T>>(e, x, partial, stream, terms);
  else
    channel_partials<kSums, 1>(e, x, partial, stream, terms);
  launch(finish_kernel<kSums, Finish>, grid_blocks(e.C, kEnds, 1 << 30), dim3(kEnds, kThreads / kEnds), stream, partial,
         e.C, channel_splits(e), finish);
}

}  // namespace echelon::cuda
