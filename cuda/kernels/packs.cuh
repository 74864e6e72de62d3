// SPDX-License-Identifier: Apache-2.0
// Elements in packs of 16 bytes, which one thread loads, computes in Wide<T> and stores together.
#pragma once

#include <cstring>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"

namespace echelon::cuda {

template <class T>
inline constexpr int kPack = 16 / sizeof(T);

template <class T, int kCount>
struct Inputs {
  const T* at[kCount];
};
template <class T, class... More>
Inputs<T, 1 + sizeof...(More)> inputs(const T* first, const More*... more) {
  return {{first, more...}};
}

inline bool whole(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }
template <class T, int kCount>
bool whole(const Inputs<T, kCount>& x) {
  return std::all_of(x.at, x.at + kCount, [](const T* at) { return whole(at); });
}

// K elements as they are stored, accessed at once if they are `whole`.
template <int K, class T>
struct Pack {
  T at[K];
};
template <int K, class T>
__device__ Pack<K, T> fetch(const T* from, bool whole) {
  Pack<K, T> pack;
  if (K > 1 && whole) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    std::memcpy(pack.at, &bits, sizeof bits);
  } else {
    for (int k = 0; k < K; ++k) pack.at[k] = from[k];
  }
  return pack;
}
template <int K, class T>
__device__ void load(const T* from, bool whole, Wide<T>* values) {
  const Pack<K, T> pack = fetch<K>(from, whole);
  for (int k = 0; k < K; ++k) values[k] = wide(pack.at[k]);
}
template <int K, class T>
__device__ void store(T* to, bool whole, const Pack<K, T>& pack) {
  if (K > 1 && whole) {
    uint4 bits;
    std::memcpy(&bits, pack.at, sizeof bits);
    *reinterpret_cast<uint4*>(to) = bits;
  } else {
    for (int k = 0; k < K; ++k) to[k] = pack.at[k];
  }
}

// The data that map_pack reads: all inputs and, if the result is added, the previous output.
template <int K, class T, int kCount>
struct Fetched {
  Pack<K, T> in[kCount], before;
};
template <int K, class T, int kCount>
__device__ Fetched<K, T, kCount> fetch_all(const Inputs<T, kCount>& x, const T* y, std::int64_t i, bool whole,
                                           bool add) {
  Fetched<K, T, kCount> fetched;
  for (int j = 0; j < kCount; ++j) fetched.in[j] = fetch<K>(x.at[j] + i, whole);
  if (add) fetched.before = fetch<K>(y + i, whole);
  return fetched;
}

// to[0..K) (+)= f(k, values of all inputs).
template <int K, class T, int kCount, class F>
__device__ void map_fetched(const Fetched<K, T, kCount>& fetched, T* to, bool whole, bool add, const F& f) {
  Pack<K, T> out;
  for (int k = 0; k < K; ++k) {
    Wide<T> values[kCount];
    for (int j = 0; j < kCount; ++j) values[j] = wide(fetched.in[j].at[k]);
    const Wide<T> value = f(k, values);
    out.at[k] = Narrow<T>::from(add ? wide(fetched.before.at[k]) + value : value);
  }
  store(to, whole, out);
}

// y[i..] (+)= f(k, values of all inputs at i + k) for k < K.
template <int K, class T, int kCount, class F>
__device__ void map_pack(const Inputs<T, kCount>& x, T* y, std::int64_t i, bool whole, bool add, const F& f) {
  map_fetched(fetch_all<K>(x, static_cast<const T*>(y), i, whole, add), y + i, whole, add, f);
}

template <class T, int kCount, class F>
__global__ void __launch_bounds__(kThreads)
    map_kernel(std::int64_t n, std::int64_t packs, Inputs<T, kCount> x, T* y, bool add, F f) {
  const auto plain = [&](int, const Wide<T>* values) { return f(values); };
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t p = first; p < packs; p += stride) map_pack<kPack<T>>(x, y, p * kPack<T>, true, add, plain);
  for (std::int64_t i = packs * kPack<T> + first; i < n; i += stride) map_pack<1>(x, y, i, true, add, plain);
}

// y (+)= f(values of all inputs) for n elements.
template <class T, int kCount, class F>
void map(std::int64_t n, const Inputs<T, kCount>& x, T* y, bool add, cudaStream_t stream, F f) {
  const std::int64_t packs = whole(x) && whole(y) ? n / kPack<T> : 0;
  const unsigned blocks = grid_blocks(std::max(packs, n - packs * kPack<T>), kThreads, 1 << 16);
  if (n > 0) launch(map_kernel<T, kCount, F>, blocks, kThreads, stream, n, packs, x, y, add, f);
}

// Grid (C, parts of the images, parts of an image).
template <int K, class T, int kCount, class F>
__global__ void __launch_bounds__(kThreads)
    map_planes_kernel(ChannelExtents e, Inputs<T, kCount> x, T* y, bool add, F f) {
  const std::int64_t c = blockIdx.x, images = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.z) * blockDim.x;
  const auto own = f.of(c);
  const auto one = [&](int, const Wide<T>* values) { return own(values); };
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; n < e.N; n += images)
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.z) * blockDim.x + threadIdx.x; p < e.elems / K; p += step)
      map_pack<K>(x, y, (n * e.C + c) * e.elems + p * K, true, add, one);
}

// For images of one element: a thread keeps K channels and goes down the rows, two at a time. Grid (columns of packs,
// rows).
template <int K, class T, int kCount, class F>
__global__ void __launch_bounds__(kThreads)
    map_rows_kernel(ChannelExtents e, Inputs<T, kCount> x, T* y, bool add, F f) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * K;
  if (c >= e.C) return;
  decltype(f.of(c)) own[K];
  for (int k = 0; k < K; ++k) own[k] = f.of(c + k);
  const auto of_pack = [&](int k, const Wide<T>* values) { return own[k](values); };
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  std::int64_t n = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  for (; n + stride < e.N; n += 2 * stride) {
    const std::int64_t one = n * e.C + c, two = one + stride * e.C;
    const auto first = fetch_all<K>(x, static_cast<const T*>(y), one, true, add);
    const auto second = fetch_all<K>(x, static_cast<const T*>(y), two, true, add);
    map_fetched(first, y + one, true, add, of_pack);
    map_fetched(second, y + two, true, add, of_pack);
  }
  if (n < e.N) map_pack<K>(x, y, n * e.C + c, true, add, of_pack);
}

template <int K, class T, int kCount, class F>
void map_channels_by(const ChannelExtents& e, const Inputs<T, kCount>& x, T* y, bool add, cudaStream_t stream, F f) {
  if (e.elems == 1) {
    const dim3 block = row_block(e.C / K);
    const dim3 grid(grid_blocks(e.C / K, block.x, 1 << 30), grid_blocks(e.N, 4 * block.y, 1 << 12));
    launch(map_rows_kernel<K, T, kCount, F>, grid, block, stream, e, x, y, add, f);
  } else {
    const dim3 block = plane_block(e.elems / K);
    const dim3 grid(static_cast<unsigned>(e.C), grid_blocks(e.N, block.y, 1 << 10),
                    grid_blocks(e.elems / K, 4 * block.x, 64));
    launch(map_planes_kernel<K, T, kCount, F>, grid, block, stream, e, x, y, add, f);
  }
}

// y (+)= f.of(c)(values of all inputs) for every element of a tensor (N, C, elems); `of` gathers the data of a channel.
template <class T, int kCount, class F>
void map_channels(const ChannelExtents& e, const Inputs<T, kCount>& x, T* y, bool add, cudaStream_t stream, F f) {
  const std::int64_t row = e.elems == 1 ? e.C : e.elems;
  if (row % kPack<T> == 0 && whole(x) && whole(y))
    map_channels_by<kPack<T>>(e, x, y, add, stream, f);
  else
    map_channels_by<1>(e, x, y, add, stream, f);
}

}  // namespace echelon::cuda
