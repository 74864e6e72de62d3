// SPDX-License-Identifier: Apache-2.0
// Copies the weights of a recurrent layer between the arena's plain tensors and cuDNN's weight space, in one launch
// each way. T is any of ECHELON_CUDA_TYPES; the arena holds Wide<T>.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/types.hpp"

namespace echelon::cuda {

// The library's offset of each gate, in elements from the start of its space: matrices (H, F) or (H, H), biases (H);
// the G input matrices or biases first, then the G recurrent ones.
struct RnnParts {
  static constexpr int kMost = 8;
  std::int64_t G, H, F;
  std::int64_t matrix[kMost], bias[kMost];
};

// weight_x (G*H, F), weight_h (G*H, H), biases (G*H).
template <class P>
struct RnnParameters {
  P *weight_x, *weight_h, *bias_x, *bias_h;
};

// Whether each of the four gradients is added.
struct RnnAdds {
  bool weight_x, weight_h, bias_x, bias_h;
};

template <class T>
void pack_rnn_weights(const RnnParts& parts, const RnnParameters<const Wide<T>>& weights, T* space,
                      cudaStream_t stream);
template <class T>
void unpack_rnn_gradients(const RnnParts& parts, const T* space, const RnnParameters<Wide<T>>& gradients, RnnAdds adds,
                          cudaStream_t stream);

}  // namespace echelon::cuda
