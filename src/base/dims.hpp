// SPDX-License-Identifier: Apache-2.0
// The glossary of dimension letters, used with the same meaning in every room, in comments, shapes and reports.
//
//   N  samples in a micro-batch          C  input channels           H, W  height and width of an input
//   K  output channels or output units   R, S  kernel height, width  P, Q  height and width of an output
//   F  features of a flattened sample    T  time steps               k  replicas (complete copies of the model)
//   G  bytes of all gradients            W  weight of a step (samples that enter it, over all replicas)
//   H  (recurrent) values of a state     V  vocabulary: number of tokens
//
// Activations are (N, C, H, W); convolution weights (K, C/groups, R, S); dense weights (K, F).
#pragma once

#include <cstdint>

namespace echelon::inline base {

// Returns the output extent of a window that slides over `extent` values: floor((extent + 2 pad - dil (size-1) - 1) /
// stride) + 1. Returns 0 if the window does not fit, which callers must refuse. stride >= 1.
constexpr std::int64_t window_extent(std::int64_t extent, std::int64_t size, std::int64_t stride, std::int64_t pad,
                                     std::int64_t dilation = 1) {
  const std::int64_t room = extent + 2 * pad - dilation * (size - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace echelon::inline base
