// SPDX-License-Identifier: Apache-2.0
// Sparse codecs: topk and threshold, with raw indices. Sizes are compared as integers, as comm/codec/select.hpp does.
//
// The m-th largest value is found digit by digit from the top, by counting the values that share the digits found so
// far. Chosen values are written in the order of indices, by counts per tile, their sums before each tile, and warp
// votes within a tile. Atomics only count and compare integers, so their order does not matter.
#include "cuda/kernels/codec.cuh"
#include "cuda/kernels/codec.hpp"

namespace echelon::cuda {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kTile = 2048, kWarps = kThreads / 32, kMostBlocks = 1 << 10;
constexpr std::uint32_t kRaw = 255, kMap = 254, kHead = 12, kException = 8;  // comm/codec/threshold.cpp

__global__ void __launch_bounds__(kThreads)
    correct_kernel(const float* values, float* corrected, std::int64_t n, Selection* selection) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) {
    corrected[i] = __fadd_rn(values[i], corrected[i]);
    if (size_bits(corrected[i]) >= kInfinity) atomicMin(&selection->exception, static_cast<std::uint32_t>(i));
  }
}

// Counts the digit at `shift` of the values whose higher digits are those of `least`.
__global__ void __launch_bounds__(kThreads)
    digits_kernel(const float* corrected, std::int64_t n, int shift, const Selection* selection, std::uint32_t* bins) {
  __shared__ std::uint32_t counts[kSelectionBins];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const std::uint64_t found = static_cast<std::uint64_t>(selection->least) >> (shift + 8);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) {
    const std::uint64_t size = size_bits(corrected[i]);
    if (size >> (shift + 8) == found) atomicAdd(&counts[size >> shift & 0xffu], 1u);
  }
  __syncthreads();
  if (counts[threadIdx.x] > 0) atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

// Finds the digit that contains the `ties`-th largest of the counted values; `ties` then counts within that digit.
__global__ void __launch_bounds__(kThreads) choose_kernel(int shift, Selection* selection, std::uint32_t* bins) {
  __shared__ std::uint32_t counts[kSelectionBins];
  counts[threadIdx.x] = bins[threadIdx.x];
  bins[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x > 0) return;
  std::uint32_t left = selection->ties, bin = kSelectionBins - 1;
  for (; counts[bin] < left; --bin) left -= counts[bin];
  selection->ties = left;
  selection->least |= bin << shift;
}

struct Choice {
  bool above, tie;
};
__device__ Choice choice(float corrected, bool there, const Selection& by) {
  const std::uint32_t size = size_bits(corrected);
  return {there && size > by.least, there && size == by.least && by.ties > 0};
}

__global__ void __launch_bounds__(kThreads)
    count_kernel(const float* corrected, std::int64_t n, const Selection* selection, std::uint64_t* tiles) {
  const Selection by = *selection;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kTile;
  std::uint64_t found = 0;
  for (int j = 0; j < kTile; j += kThreads) {
    const std::int64_t i = begin + j + threadIdx.x;
    const Choice here = choice(i < n ? corrected[i] : 0, i < n, by);
    found += (here.above ? std::uint64_t{1} << 32 : 0) + (here.tie ? 1 : 0);
  }
  found = block_reduce(found, Plus{});
  if (threadIdx.x == 0) tiles[blockIdx.x] = found;
}

__device__ std::uint32_t chosen_of(std::uint64_t found, std::uint32_t ties) {
  const auto equal = static_cast<std::uint32_t>(found);
  return static_cast<std::uint32_t>(found >> 32) + (equal < ties ? equal : ties);
}

// Turns each tile's count into the sum over the tiles before it; each thread handles a contiguous range of tiles.
__global__ void __launch_bounds__(kThreads)
    before_kernel(std::uint64_t* tiles, std::int64_t count, Selection* selection) {
  __shared__ std::uint64_t sums[kThreads];
  const std::int64_t each_thread = (count + kThreads - 1) / kThreads, begin = threadIdx.x * each_thread;
  const std::int64_t end = begin + each_thread < count ? begin + each_thread : count;
  std::uint64_t sum = 0;
  for (std::int64_t t = begin; t < end; ++t) sum += tiles[t];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint64_t before = 0;
    for (int t = 0; t < kThreads; ++t) {
      const std::uint64_t mine = sums[t];
      sums[t] = before;
      before += mine;
    }
    selection->count = chosen_of(before, selection->ties);
  }
  __syncthreads();
  std::uint64_t before = sums[threadIdx.x];
  for (std::int64_t t = begin; t < end; ++t) {
    const std::uint64_t mine = tiles[t];
    tiles[t] = before;
    before += mine;
  }
}

// Calls body(i, chosen, position, plus, minus) for the tile's indices, all threads of the block together. `position` is
// the number of chosen values before it; `plus` and `minus` are the warp's votes on the values that are chosen with
// each sign.
template <class Body>
__device__ void each_choice(const float* corrected, std::int64_t n, const Selection& by, std::uint64_t before,
                            Body body) {
  __shared__ std::uint64_t of_warp[kWarps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, earlier = (1u << lane) - 1;
  for (int j = 0; j < kTile; j += kThreads) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kTile + j + threadIdx.x;
    const float value = i < n ? corrected[i] : 0;
    const Choice here = choice(value, i < n, by);
    const unsigned above = __ballot_sync(kAll, here.above), tie = __ballot_sync(kAll, here.tie);
    if (lane == 0)
      of_warp[warp] = static_cast<std::uint64_t>(__popc(above)) << 32 | static_cast<std::uint64_t>(__popc(tie));
    __syncthreads();
    std::uint64_t mine = before + (static_cast<std::uint64_t>(__popc(above & earlier)) << 32) +
                         static_cast<std::uint64_t>(__popc(tie & earlier));
    for (unsigned w = 0; w < kWarps; ++w) {
      if (w < warp) mine += of_warp[w];
      before += of_warp[w];
    }
    const bool chosen = here.above || (here.tie && static_cast<std::uint32_t>(mine) < by.ties);
    const bool minus = (__float_as_uint(value) >> 31) != 0;
    const unsigned plus_votes = __ballot_sync(kAll, chosen && !minus), votes = __ballot_sync(kAll, chosen && minus);
    body(i, chosen, chosen_of(mine, by.ties), plus_votes, votes);
    __syncthreads();  // the next round writes the same memory
  }
}

__global__ void __launch_bounds__(kThreads)
    topk_kernel(float* corrected, std::byte* wire, std::int64_t n, std::int64_t m, const Selection* selection,
                const std::uint64_t* tiles) {
  auto* words = reinterpret_cast<std::uint32_t*>(wire);
  if (blockIdx.x == 0 && threadIdx.x == 0) words[0] = kRaw;
  each_choice(corrected, n, *selection, tiles[blockIdx.x],
              [=](std::int64_t i, bool chosen, std::uint32_t position, unsigned, unsigned) {
                if (i >= n) return;
                if (chosen) {
                  words[1 + position] = static_cast<std::uint32_t>(i) << 1;
                  words[1 + m + position] = __float_as_uint(corrected[i]);
                }
                corrected[i] = chosen ? 0.0f : finite_or_zero(corrected[i]);
              });
}

__device__ std::uint32_t map_bytes(std::int64_t n) { return static_cast<std::uint32_t>((n + 3) / 4); }
__device__ bool as_map(const Selection& selection, std::int64_t n) {
  return 4 * static_cast<std::uint64_t>(selection.count) > map_bytes(n);
}

// Runs before the message's indices are written, while `corrected` still holds the exception.
__global__ void head_kernel(const float* corrected, std::byte* wire, std::int64_t n, Selection* selection) {
  auto* words = reinterpret_cast<std::uint32_t*>(wire);
  const bool map = as_map(*selection, n), exception = selection->exception != kAll;
  words[0] = selection->count;
  words[1] = __float_as_uint(selection->tau);
  words[2] = (map ? kMap : kRaw) | (exception ? 1u << 8 : 0u);
  if (exception) {
    words[3] = selection->exception;
    words[4] = __float_as_uint(corrected[selection->exception]);
  }
  selection->bytes = kHead + (exception ? kException : 0) + (map ? map_bytes(n) : 4 * selection->count);
}

// Encodes bits 0..3 of the votes as two bits per value.
__device__ unsigned map_byte(unsigned plus, unsigned minus) {
  unsigned byte = 0;
  for (int j = 0; j < 4; ++j) byte |= ((plus >> j & 1u) | (minus >> j & 1u) << 1) << (2 * j);
  return byte;
}

__global__ void __launch_bounds__(kThreads) threshold_kernel(float* corrected, std::byte* wire, std::int64_t n,
                                                             const Selection* selection, const std::uint64_t* tiles) {
  const Selection by = *selection;
  const bool map = as_map(by, n);
  std::byte* indices = wire + kHead + (by.exception != kAll ? kException : 0);
  auto* entries = reinterpret_cast<std::uint32_t*>(indices);
  each_choice(corrected, n, by, tiles[blockIdx.x],
              [=](std::int64_t i, bool chosen, std::uint32_t position, unsigned plus, unsigned minus) {
                if (i >= n) return;
                const bool negative = (__float_as_uint(corrected[i]) >> 31) != 0;
                if (chosen && !map) entries[position] = static_cast<std::uint32_t>(i) << 1 | (negative ? 1u : 0u);
                if (map && i % 4 == 0)
                  indices[i / 4] = static_cast<std::byte>(map_byte(plus >> i % 32, minus >> i % 32));
                corrected[i] = chosen ? (size_bits(corrected[i]) < kInfinity
                                             ? residual_after(corrected[i], negative ? -by.tau : by.tau)
                                             : 0.0f)
                                      : finite_or_zero(corrected[i]);
              });
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const Selection* selection, const ResidualNorms* residual_norms, const std::byte* wire,
                ResidualNorms* residual_norms_host, std::byte* wire_host) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *residual_norms_host = *residual_norms;
  const auto* from = reinterpret_cast<const std::uint32_t*>(wire);
  auto* to = reinterpret_cast<std::uint32_t*>(wire_host);
  const std::uint32_t words = (selection->bytes + 3) / 4;
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads) to[i] = from[i];
}

void locate_choices(const float* corrected, std::int64_t n, SelectionMemory memory, cudaStream_t stream) {
  const auto tiles = static_cast<unsigned>(selection_tiles(n));
  launch(count_kernel, tiles, kThreads, stream, corrected, n, memory.selection, memory.tiles);
  launch(before_kernel, 1, kThreads, stream, memory.tiles, tiles, memory.selection);
}

}  // namespace

std::int64_t selection_tiles(std::int64_t n) { return (n + kTile - 1) / kTile; }

void begin_selection(const float* values, float* corrected, std::int64_t n, SelectionMemory memory,
                     cudaStream_t stream) {
  each(kSelectionBins, stream, [=] __device__(std::int64_t i) {
    memory.bins[i] = 0;
    if (i == 0) *memory.selection = {.exception = kAll};
  });
  launch(correct_kernel, grid_blocks(n, kThreads, kMostBlocks), kThreads, stream, values, corrected, n,
         memory.selection);
}

void select_largest(const float* corrected, std::int64_t n, std::int64_t m, SelectionMemory memory,
                    cudaStream_t stream) {
  each(1, stream, [=] __device__(std::int64_t) { memory.selection->ties = static_cast<std::uint32_t>(m); });
  for (int shift = 24; shift >= 0; shift -= 8) {
    launch(digits_kernel, grid_blocks(n, kThreads, kMostBlocks), kThreads, stream, corrected, n, shift,
           memory.selection, memory.bins);
    launch(choose_kernel, 1, kThreads, stream, shift, memory.selection, memory.bins);
  }
}

void select_above(float tau, SelectionMemory memory, cudaStream_t stream) {
  each(1, stream, [=] __device__(std::int64_t) {
    Selection& selection = *memory.selection;
    const std::uint32_t found = selection.least;
    selection.tau = tau > 0 ? tau : found < kInfinity ? __uint_as_float(found) : 0.0f;
    selection.least = selection.tau > 0 ? __float_as_uint(selection.tau) - 1 : kAll;
    selection.ties = 0;
  });
}

void topk_encode(float* corrected, std::byte* wire, std::int64_t n, std::int64_t m, SelectionMemory memory,
                 cudaStream_t stream) {
  locate_choices(corrected, n, memory, stream);
  launch(topk_kernel, static_cast<unsigned>(selection_tiles(n)), kThreads, stream, corrected, wire, n, m,
         memory.selection, memory.tiles);
}

void threshold_encode(float* corrected, std::byte* wire, std::int64_t n, SelectionMemory memory, cudaStream_t stream) {
  locate_choices(corrected, n, memory, stream);
  launch(head_kernel, 1, 1, stream, corrected, wire, n, memory.selection);
  launch(threshold_kernel, static_cast<unsigned>(selection_tiles(n)), kThreads, stream, corrected, wire, n,
         memory.selection, memory.tiles);
}

void copy_message(const Selection* selection, const ResidualNorms* residual_norms, const std::byte* wire,
                  ResidualNorms* residual_norms_host, std::byte* wire_host, cudaStream_t stream) {
  launch(copy_kernel, 64, kThreads, stream, selection, residual_norms, wire, residual_norms_host, wire_host);
}

void topk_add(const std::byte* wire, float* values, std::int64_t m, cudaStream_t stream) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(wire);
  each(m, stream, [=] __device__(std::int64_t i) {
    put_value(values + (words[1 + i] >> 1), __uint_as_float(words[1 + m + i]), true);
  });
}

void exception_add(const std::byte* exception, float* values, cudaStream_t stream) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(exception);
  each(1, stream, [=] __device__(std::int64_t) { put_value(values + words[0], __uint_as_float(words[1]), true); });
}

void entries_add(const std::byte* entries, std::int64_t count, float tau, float* values, cudaStream_t stream) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(entries);
  each(count, stream, [=] __device__(std::int64_t i) {
    put_value(values + (words[i] >> 1), (words[i] & 1u) != 0 ? -tau : tau, true);
  });
}

void map_add(const std::byte* map, float tau, float* values, std::int64_t n, cudaStream_t stream) {
  each(n, stream, [=] __device__(std::int64_t i) {
    const unsigned code = static_cast<unsigned>(map[i / 4]) >> (2 * (i % 4)) & 3u;
    if (code != 0) put_value(values + i, code == 1 ? tau : -tau, true);
  });
}

}  // namespace echelon::cuda
