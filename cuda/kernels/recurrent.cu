// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/recurrent.hpp"
#include "device/row_bits.hpp"

namespace echelon::cuda {
namespace {

constexpr int kIds = 1024;  // number of ids that the threads of a block look at together

// Clears the marked rows and their marks, unless the op adds; then marks the rows of ids, where row 0 belongs to
// `id`.
template <class T>
void mark_rows(const std::int32_t* ids, std::int64_t id, T* dw, std::int64_t rows, const RowMarks& touched, bool add,
               cudaStream_t stream) {
  std::uint32_t* words = touched.words;
  const std::int64_t F = touched.width, V = touched.rows;
  if (!add) {
    each(touched.rows * F, stream, [=] __device__(std::int64_t i) {
      if (row_marked(words, i / F)) dw[i] = T(0);
    });
    each(row_words(touched.rows), stream, [=] __device__(std::int64_t i) { words[i] = 0; });
  }
  each(rows, stream, [=] __device__(std::int64_t r) {
    const std::int64_t v = ids[r] - id;
    if (v >= 0 && v < V) atomicOr(words + v / kRowsOfWord, std::uint32_t{1} << v % kRowsOfWord);
  });
}

// A block owns one row of the table (with marks, a marked one): its warps look through all ids and note its own, in
// order, and the block sums those rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    embedding_gradient_kernel(const std::int32_t* ids, const T* dy, Wide<T>* dw, std::int64_t rows, std::int64_t V,
                              std::int64_t F, std::int64_t id, const std::uint32_t* touched, bool add) {
  constexpr int kWarps = kThreads / kWarpLanes, kRounds = kIds / kThreads;
  __shared__ int found[kWarps];
  __shared__ std::int32_t own[kIds];
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  for (std::int64_t v = blockIdx.x; v < V; v += gridDim.x) {
    if (touched && !row_marked(touched, v)) continue;
    for (std::int64_t f = threadIdx.x; f < F && !add; f += blockDim.x) dw[v * F + f] = 0;
    for (std::int64_t first = 0; first < rows; first += kIds) {
      const int count = static_cast<int>(first + kIds < rows ? kIds : rows - first);
      unsigned votes[kRounds];
      int mine = 0;
      for (int round = 0; round < kRounds; ++round) {
        const int i = (warp * kRounds + round) * kWarpLanes + lane;
        votes[round] = __ballot_sync(0xffffffffu, i < count && ids[first + i] - id == v);
        mine += __popc(votes[round]);
      }
      if (lane == 0) found[warp] = mine;
      if (!__syncthreads_or(mine)) continue;
      int at = 0, all = 0;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) at = all;
        all += found[w];
      }
      for (int round = 0; round < kRounds; ++round) {
        if (votes[round] >> lane & 1u)
          own[at + __popc(votes[round] & ((1u << lane) - 1))] = (warp * kRounds + round) * kWarpLanes + lane;
        at += __popc(votes[round]);
      }
      __syncthreads();
      for (std::int64_t f = threadIdx.x; f < F; f += blockDim.x) {
        Wide<T> sum = dw[v * F + f];
        for (int i = 0; i < all; ++i) sum += wide(dy[(first + own[i]) * F + f]);
        dw[v * F + f] = sum;
      }
    }
  }
}

}  // namespace

template <class T>
void place_sequences(const Sequences& s, const T* from, T* to, bool reverse, bool add, cudaStream_t stream) {
  const std::int64_t steps = s.T;
  const std::int64_t F = s.F;
  const std::int32_t* lengths = s.lengths;
  each(s.N * steps * F, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / (steps * F);
    const std::int64_t t = i / F % steps;
    const std::int64_t length = lengths ? lengths[n] : steps;
    const std::int64_t source = reverse ? length - 1 - t : t;
    put(to + i, t < length ? wide(from[(n * steps + source) * F + i % F]) : Wide<T>(0), add);
  });
}

template <class T>
void embedding_rows(const std::int32_t* ids, const Wide<T>* w, T* y, const EmbeddingDims& d, cudaStream_t stream) {
  const std::int64_t F = d.F, V = d.V, first = d.first;
  each(d.rows * F, stream, [=] __device__(std::int64_t i) {
    const std::int64_t v = ids[i / F] - first;
    put(y + i, v >= 0 && v < V ? w[v * F + i % F] : Wide<T>(0));
  });
}

template <class T>
void embedding_gradient(const std::int32_t* ids, const T* dy, Wide<T>* dw, const EmbeddingDims& d,
                        std::uint32_t* touched, bool add, cudaStream_t stream) {
  if (touched) mark_rows(ids, d.first, dw, d.rows, {touched, d.V, d.F}, add, stream);
  launch(embedding_gradient_kernel<T>, grid_blocks(d.V, 1, 1 << 16), kThreads, stream, ids, dy, dw, d.rows, d.V, d.F,
         d.first, touched, add || touched != nullptr);
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void place_sequences<T>(const Sequences&, const T*, T*, bool, bool, cudaStream_t);                        \
  template void embedding_rows<T>(const std::int32_t*, const Wide<T>*, T*, const EmbeddingDims&, cudaStream_t);      \
  template void embedding_gradient<T>(const std::int32_t*, const T*, Wide<T>*, const EmbeddingDims&, std::uint32_t*, \
                                      bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
