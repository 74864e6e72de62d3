// SPDX-License-Identifier: Apache-2.0
// Codecs whose messages have a fixed length: casts, int8 and onebit.
#include <cuda_fp16.h>

#include <climits>

#include "cuda/kernels/codec.cuh"
#include "cuda/kernels/codec.hpp"
#include "cuda/kernels/vector.hpp"

namespace echelon::cuda {
namespace {

struct Fp16 {
  float up, down;
  __device__ std::uint16_t pack(float value) const { return __half_as_ushort(__float2half_rn(__fmul_rn(value, down))); }
  __device__ float unpack(std::uint16_t half) const { return __fmul_rn(__half2float(__ushort_as_half(half)), up); }
};

struct Bf16 {
  __device__ std::uint16_t pack(float value) const {
    const std::uint32_t bits = __float_as_uint(value), upper = bits >> 16;
    if (size_bits(value) > kInfinity) return static_cast<std::uint16_t>(upper | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (upper & 1u)) >> 16);
  }
  __device__ float unpack(std::uint16_t half) const { return __uint_as_float(static_cast<std::uint32_t>(half) << 16); }
};

template <class Half>
void encode_halves(Half half, const float* values, float* residual, std::byte* wire, std::int64_t n,
                   cudaStream_t stream) {
  auto* halves = reinterpret_cast<std::uint16_t*>(wire);
  each(n, stream, [=] __device__(std::int64_t i) {
    const float corrected = __fadd_rn(values[i], residual[i]);
    const std::uint16_t encoded = half.pack(corrected);
    halves[i] = encoded;
    residual[i] = residual_after(corrected, half.unpack(encoded));
  });
}

template <class Half>
void decode_halves(Half half, const std::byte* wire, float* values, std::int64_t n, bool add, cudaStream_t stream) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(wire);
  each(n, stream, [=] __device__(std::int64_t i) { put_value(values + i, half.unpack(halves[i]), add); });
}

constexpr std::int64_t kInt8Block = 512, kInt8Bytes = kInt8Block + 4;

// As in comm/codec/draws.hpp: each hash gives two draws of 16 bits, for values eight indices apart.
struct Draws {
  std::uint32_t low, high;
  __device__ int of(std::int64_t first, std::int64_t i) const {
    auto x = static_cast<std::uint32_t>(first + i / 16 * 8 + i % 8);
    x ^= low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x ^= high;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    return static_cast<int>(i % 16 < 8 ? x & 0xffffu : x >> 16);
  }
};

__device__ float int8_scale(float largest) {
  if (!(size_bits(largest) < kInfinity)) return __uint_as_float(0x7fc00000u);
  const float scale = __fdiv_rn(largest, 127.0f);
  return scale < 0x1p-110f ? 0.0f : scale;
}

// One thread block per block of values.
__global__ void __launch_bounds__(kThreads) int8_kernel(Draws draws, std::int64_t first, const float* values,
                                                        float* residual, std::byte* wire, std::int64_t n) {
  constexpr int kEach = kInt8Block / kThreads;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kInt8Block;
  std::byte* message = wire + blockIdx.x * kInt8Bytes;
  float corrected[kEach];
  std::uint32_t most = 0;
  for (int j = 0; j < kEach; ++j) {
    const std::int64_t i = begin + j * kThreads + threadIdx.x;
    corrected[j] = i < n ? __fadd_rn(values[i], residual[i]) : 0.0f;
    most = Most{}(most, size_bits(corrected[j]));
  }
  const float scale = int8_scale(__uint_as_float(block_reduce(most, Most{})));
  const float down = scale > 0 ? __fdiv_rn(0x1p16f, scale) : 0.0f;
  if (threadIdx.x == 0) *reinterpret_cast<float*>(message) = scale;
  for (int j = 0; j < kEach; ++j) {
    const std::int64_t i = begin + j * kThreads + threadIdx.x;
    if (i >= n) continue;
    const float steps = __fmul_rn(corrected[j], down);
    const int fine = size_bits(steps) < kInfinity ? __float2int_rn(steps) : INT_MIN;  // rounds NaN as the host does
    const int q = max(-128, min((fine + draws.of(first, i)) >> 16, 127));
    message[4 + j * kThreads + threadIdx.x] = static_cast<std::byte>(q);
    residual[i] = residual_after(corrected[j], __fmul_rn(static_cast<float>(q), scale));
  }
}

constexpr int kBitBlock = 2048, kBitMeans = 8;

// Adds in the order of comm/codec/lanes.hpp: ((0+4) + (2+6)) + ((1+5) + (3+7)).
__device__ float sum_lanes(const float* lane) {
  return __fadd_rn(__fadd_rn(__fadd_rn(lane[0], lane[4]), __fadd_rn(lane[2], lane[6])),
                   __fadd_rn(__fadd_rn(lane[1], lane[5]), __fadd_rn(lane[3], lane[7])));
}

// One thread block per block of values. The host sums in eight lanes, index i in lane i mod 8, one after another;
// sixteen threads do the same here, eight for each sign.
__global__ void __launch_bounds__(kThreads)
    onebit_kernel(const DeviceCodecBlock* blocks, const float* values, float* residual, std::byte* wire) {
  __shared__ float corrected[kBitBlock];
  __shared__ float lanes[16];
  __shared__ float means[2];
  const DeviceCodecBlock block = blocks[blockIdx.x];
  const std::int64_t begin = block.begin;
  const int size = static_cast<int>(block.elems), thread = threadIdx.x;
  std::byte* message = wire + block.at;
  if (!block.coded) {
    for (int i = thread; i < size; i += kThreads) {
      reinterpret_cast<float*>(message)[i] = __fadd_rn(values[begin + i], residual[begin + i]);
      residual[begin + i] = 0;
    }
    return;
  }
  for (int i = thread; i < kBitBlock; i += kThreads)
    corrected[i] = i < size ? __fadd_rn(values[begin + i], residual[begin + i]) : -1.0f;
  __syncthreads();
  unsigned bits = 0;
  for (int bit = 0; bit < 8; ++bit) bits |= (corrected[8 * thread + bit] >= 0 ? 1u : 0u) << bit;
  if (8 * thread < (size + 31) / 32 * 32) message[kBitMeans + thread] = static_cast<std::byte>(bits);
  const int uppers = block_reduce(__popc(bits), Plus{}), lowers = size - uppers;
  if (thread < 16) {
    float sum = 0;
    for (int i = thread % 8; i < size; i += 8)
      sum = __fadd_rn(sum, (corrected[i] >= 0) == (thread < 8) ? corrected[i] : 0.0f);
    lanes[thread] = sum;
  }
  __syncthreads();
  if (thread == 0) {
    means[0] = uppers > 0 ? __fdiv_rn(sum_lanes(lanes), static_cast<float>(uppers)) : 0.0f;
    means[1] = lowers > 0 ? __fdiv_rn(sum_lanes(lanes + 8), static_cast<float>(lowers)) : 0.0f;
    reinterpret_cast<float*>(message)[0] = means[0];
    reinterpret_cast<float*>(message)[1] = means[1];
  }
  __syncthreads();
  for (int i = thread; i < size; i += kThreads)
    residual[begin + i] = residual_after(corrected[i], means[corrected[i] >= 0 ? 0 : 1]);
}

__global__ void __launch_bounds__(kThreads)
    onebit_decode_kernel(const DeviceCodecBlock* blocks, const std::byte* wire, float* values, bool add) {
  const DeviceCodecBlock block = blocks[blockIdx.x];
  const std::byte* message = wire + block.at;
  const auto* singles = reinterpret_cast<const float*>(message);  // a coded block begins with its means
  for (int i = threadIdx.x; i < static_cast<int>(block.elems); i += kThreads) {
    int at = i;
    if (block.coded) at = (static_cast<unsigned>(message[kBitMeans + i / 8]) >> (i % 8) & 1u) != 0 ? 0 : 1;
    put_value(values + block.begin + i, singles[at], add);
  }
}

__global__ void __launch_bounds__(kThreads) residual_norms_kernel(const double* squares, const std::uint64_t* most,
                                                                  ResidualNorms* residual_norms, int partials) {
  double sum = 0;
  std::uint64_t largest = 0;
  for (int i = threadIdx.x; i < partials; i += kThreads) {
    sum += squares[i];
    largest = Most{}(largest, most[i]);
  }
  sum = block_reduce(sum, Plus{});
  largest = block_reduce(largest, Most{});
  if (threadIdx.x == 0) *residual_norms = {sum, __longlong_as_double(static_cast<long long>(largest))};
}

unsigned blocks_of(std::int64_t n, std::int64_t block) { return static_cast<unsigned>((n + block - 1) / block); }

}  // namespace

void cast_encode(bool bf16, float up, const float* values, float* residual, std::byte* wire, std::int64_t n,
                 cudaStream_t stream) {
  if (bf16)
    encode_halves(Bf16{}, values, residual, wire, n, stream);
  else
    encode_halves(Fp16{up, 1 / up}, values, residual, wire, n, stream);
}

void cast_decode(bool bf16, float up, const std::byte* wire, float* values, std::int64_t n, bool add,
                 cudaStream_t stream) {
  if (bf16)
    decode_halves(Bf16{}, wire, values, n, add, stream);
  else
    decode_halves(Fp16{up, 1 / up}, wire, values, n, add, stream);
}

void int8_encode(std::uint64_t key, std::int64_t first, const float* values, float* residual, std::byte* wire,
                 std::int64_t n, cudaStream_t stream) {
  const Draws draws{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  if (n > 0) launch(int8_kernel, blocks_of(n, kInt8Block), kThreads, stream, draws, first, values, residual, wire, n);
}

void int8_decode(const std::byte* wire, float* values, std::int64_t n, bool add, cudaStream_t stream) {
  each(n, stream, [=] __device__(std::int64_t i) {
    const std::byte* message = wire + i / kInt8Block * kInt8Bytes;
    const float scale = *reinterpret_cast<const float*>(message);
    const auto q = static_cast<signed char>(message[4 + i % kInt8Block]);
    put_value(values + i, __fmul_rn(static_cast<float>(q), scale), add);
  });
}

void onebit_encode(const DeviceCodecBlock* blocks, std::int64_t count, const float* values, float* residual,
                   std::byte* wire, cudaStream_t stream) {
  if (count > 0) launch(onebit_kernel, static_cast<unsigned>(count), kThreads, stream, blocks, values, residual, wire);
}

void onebit_decode(const DeviceCodecBlock* blocks, std::int64_t count, const std::byte* wire, float* values, bool add,
                   cudaStream_t stream) {
  if (count > 0)
    launch(onebit_decode_kernel, static_cast<unsigned>(count), kThreads, stream, blocks, wire, values, add);
}

void finish_residual_norms(const double* squares, const std::uint64_t* most, ResidualNorms* residual_norms,
                           cudaStream_t stream) {
  launch(residual_norms_kernel, 1, kThreads, stream, squares, most, residual_norms, kReduceBlocks);
}

}  // namespace echelon::cuda
