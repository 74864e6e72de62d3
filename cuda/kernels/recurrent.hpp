// SPDX-License-Identifier: Apache-2.0
// Kernels that recurrent models need in addition to cuDNN: copies of whole sequences (N, T, F) and of rows of
// embeddings. T is any of ECHELON_CUDA_TYPES; the table of an embedding and its gradient are Wide<T>.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/types.hpp"
#include "device/ops/embedding.hpp"

namespace echelon::cuda {

struct Sequences {
  std::int64_t N, T, F;
  const std::int32_t* lengths = nullptr;  // (N), on the device; null: all are T
};

// to (+)= from; with `reverse`, each sample's steps [0, length) are in reverse order; steps behind them become 0.
template <class T>
void place_sequences(const Sequences& s, const T* from, T* to, bool reverse, bool add, cudaStream_t stream);

// y (rows, F): row r is w[ids[r] - first] if that is a row of this w (V, F), else 0.
template <class T>
void embedding_rows(const std::int32_t* ids, const Wide<T>* w, T* y, const EmbeddingDims& d, cudaStream_t stream);
// dw (V, F) (+)= sums of dy's rows by id, in the order of the rows. With `touched` (device/row_bits.hpp) only the
// previously marked rows are cleared, and the rows of ids are marked and written.
template <class T>
void embedding_gradient(const std::int32_t* ids, const T* dy, Wide<T>* dw, const EmbeddingDims& d,
                        std::uint32_t* touched, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
