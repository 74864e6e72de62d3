// SPDX-License-Identifier: Apache-2.0
// Copies ranges of channels from one tensor into another. T is any of ECHELON_CUDA_TYPES.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/types.hpp"

namespace echelon::cuda {

// A range of channels that begins at `first` in a tensor (N, C, elems).
struct ChannelRange {
  std::int64_t C, first;
};

// The `count` channels of `to` (+)= those of `from`.
template <class T>
void move_channels(std::int64_t N, std::int64_t elems, std::int64_t count, const T* x, ChannelRange from, T* y,
                   ChannelRange to, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
