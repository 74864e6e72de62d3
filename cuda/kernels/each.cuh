// SPDX-License-Identifier: Apache-2.0
// The few launch shapes that all kernels here share. Indices are 64-bit throughout; the order of sums depends only on
// the extents, so that a run can be repeated bit by bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cuda/kernels/launch.cuh"

namespace echelon::cuda {

inline constexpr int kThreads = 256;

inline unsigned grid_blocks(std::int64_t n, std::int64_t per_block, std::int64_t most) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((n + per_block - 1) / per_block, 1, most));
}

template <class F>
__global__ void __launch_bounds__(kThreads) each_kernel(std::int64_t n, F f) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) f(i);
}

// Calls f(i) for i in [0, n).
template <class F>
void each(std::int64_t n, cudaStream_t stream, F f) {
  if (n > 0) launch(each_kernel<F>, grid_blocks(n, kThreads, 1 << 16), kThreads, stream, n, f);
}

// A block of kThreads threads for (planes, elements of a plane): x covers a plane's elements, y several planes.
inline dim3 plane_block(std::int64_t elems) {
  unsigned x = 1;
  while (x < kThreads && x < elems) x *= 2;
  return dim3(x, kThreads / x);
}

// The same for rows: x covers a row, at most a warp of it.
inline dim3 row_block(std::int64_t columns) {
  unsigned x = 1;
  while (x < 32 && x < columns) x *= 2;
  return dim3(x, kThreads / x);
}

// Reduces the block's values of one variable in shared memory, pairwise. All kThreads threads call it, and all get the
// result.
template <class V, class Combine>
__device__ V block_reduce(V value, Combine combine) {
  __shared__ V values[kThreads];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  values[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) values[thread] = combine(values[thread], values[thread + half]);
    __syncthreads();
  }
  const V result = values[0];
  __syncthreads();  // the next call writes the same memory
  return result;
}

// Rows are reduced by kLanes threads each: a warp, with eight rows per block, or a whole block for one row. by_lanes
// calls body.operator()<kLanes>(block) with the block of threads, for rows of `items` that a thread takes one after
// another. It uses a warp if no thread would have more than eight items.
inline constexpr int kWarpLanes = 32;
template <class Body>
void by_lanes(std::int64_t items, Body body) {
  items <= 8 * kWarpLanes ? body.template operator()<kWarpLanes>(dim3(kWarpLanes, kThreads / kWarpLanes))
                          : body.template operator()<kThreads>(dim3(kThreads));
}
__device__ inline std::int64_t first_row() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }
__device__ inline std::int64_t row_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.y; }

// The value of the lane whose number differs from that of this lane in the bits of `mask`.
template <class V>
__device__ V from_lane(V value, int mask) {
  static_assert(sizeof(V) % sizeof(unsigned) == 0);
  unsigned words[sizeof(V) / sizeof(unsigned)];
  std::memcpy(words, &value, sizeof value);
  for (unsigned& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  std::memcpy(&value, words, sizeof value);
  return value;
}

// Combines the values of a row's threads, pairwise; every thread gets the result. All threads of the row call it; if
// `combine` is commutative, all get the same bits.
template <int kLanes, class V, class Combine>
__device__ V lanes_reduce(V value, Combine combine) {
  if constexpr (kLanes == kThreads) {
    return block_reduce(value, combine);
  } else {
    for (int mask = kLanes / 2; mask > 0; mask /= 2) value = combine(value, from_lane(value, mask));
    return value;
  }
}

// Combines value(i) over i in [0, extent) by the threads of a row; every thread gets the result. `start` is the neutral
// value that an idle thread contributes.
template <int kLanes, class Value, class Combine>
__device__ double row_reduce(std::int64_t extent, double start, Value value, Combine combine) {
  double mine = start;
  for (std::int64_t i = threadIdx.x; i < extent; i += kLanes) mine = combine(mine, value(i));
  return lanes_reduce<kLanes>(mine, combine);
}

struct Plus {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a + b;
  }
};

}  // namespace echelon::cuda
