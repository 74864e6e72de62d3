// SPDX-License-Identifier: Apache-2.0
// Launches of the codecs of src/comm/codec on the device. Messages and residuals are those of the host, bit by bit
// (except for the payload of NaN). `residual` is added to the values first and receives the encoding error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/device_codec.hpp"

namespace echelon::cuda {

// fp16 divides by `up`, a power of two; bf16 ignores it.
void cast_encode(bool bf16, float up, const float* values, float* residual, std::byte* wire, std::int64_t n,
                 cudaStream_t stream);
void cast_decode(bool bf16, float up, const std::byte* wire, float* values, std::int64_t n, bool add,
                 cudaStream_t stream);

// Draws depend on the key and the index, counted from `first`.
void int8_encode(std::uint64_t key, std::int64_t first, const float* values, float* residual, std::byte* wire,
                 std::int64_t n, cudaStream_t stream);
void int8_decode(const std::byte* wire, float* values, std::int64_t n, bool add, cudaStream_t stream);

// `blocks` (`count` of them) is device memory.
void onebit_encode(const DeviceCodecBlock* blocks, std::int64_t count, const float* values, float* residual,
                   std::byte* wire, cudaStream_t stream);
void onebit_decode(const DeviceCodecBlock* blocks, std::int64_t count, const std::byte* wire, float* values, bool add,
                   cudaStream_t stream);

// Combines the partial results of vector.hpp.
void finish_residual_norms(const double* squares, const std::uint64_t* most, ResidualNorms* residual_norms,
                           cudaStream_t stream);

// The criteria by which the values of a sparse message are chosen.
struct Selection {
  std::uint32_t least = 0;      // sizes (bits without the sign) above it are chosen,
  std::uint32_t ties = 0;       // and this many values of exactly this size, in the order of indices
  std::uint32_t exception = 0;  // the first index of an inf or NaN; ~0: none
  float tau = 0;                // threshold
  std::uint32_t count = 0;      // number of chosen values
  std::uint32_t bytes = 0;      // threshold: length of the message
};

struct SelectionMemory {
  Selection* selection = nullptr;
  std::uint32_t* bins = nullptr;   // kSelectionBins
  std::uint64_t* tiles = nullptr;  // selection_tiles(n): values above (upper half) and ties before each tile
};
inline constexpr int kSelectionBins = 256;
std::int64_t selection_tiles(std::int64_t n);

// residual += values; finds the first inf or NaN among the sums, which stay in `corrected`.
void begin_selection(const float* values, float* corrected, std::int64_t n, SelectionMemory memory,
                     cudaStream_t stream);
// Finds `least` and `ties` of the m largest values.
void select_largest(const float* corrected, std::int64_t n, std::int64_t m, SelectionMemory memory,
                    cudaStream_t stream);
// Selects all values that reach tau. If tau is 0, uses the size that select_largest has found; if that is 0, inf or
// NaN, selects nothing.
void select_above(float tau, SelectionMemory memory, cudaStream_t stream);

// Write the message, and leave the encoding error in `corrected`.
void topk_encode(float* corrected, std::byte* wire, std::int64_t n, std::int64_t m, SelectionMemory memory,
                 cudaStream_t stream);
void threshold_encode(float* corrected, std::byte* wire, std::int64_t n, SelectionMemory memory, cudaStream_t stream);
// Copies `residual_norms` and a message whose length is in device memory to pinned host memory.
void copy_message(const Selection* selection, const ResidualNorms* residual_norms, const std::byte* wire,
                  ResidualNorms* residual_norms_host, std::byte* wire_host, cudaStream_t stream);

// Add the values of a message. Entries are index << 1 | sign; no index occurs twice.
void topk_add(const std::byte* wire, float* values, std::int64_t m, cudaStream_t stream);
void exception_add(const std::byte* exception, float* values, cudaStream_t stream);
void entries_add(const std::byte* entries, std::int64_t count, float tau, float* values, cudaStream_t stream);
void map_add(const std::byte* map, float tau, float* values, std::int64_t n, cudaStream_t stream);

}  // namespace echelon::cuda
