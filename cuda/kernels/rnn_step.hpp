// SPDX-License-Identifier: Apache-2.0
// Launches of a recurrent step's gates for some units, and of a step's place in its sequence; formulas and shapes in
// device/ops/rnn_step.hpp and place_step.hpp. T is float or double. Null: the op does not have this argument.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/ops/place_step.hpp"
#include "device/ops/rnn_step.hpp"

namespace echelon::cuda {

template <class T>
struct StepForward {
  const T *a, *product, *bias, *h, *c;  // product (N, G*U): weight_h h
  const std::int32_t* lengths;
  T *h_next, *c_next, *gates;
};
template <class T>
void rnn_step_forward(const RnnStepDims& d, const StepForward<T>& at, cudaStream_t stream);

template <class T>
struct StepBackward {
  const T *gates, *hs, *c, *c_next, *dc_next;
  const std::int32_t* lengths;
  const T *dy, *dh_next;
  T *da, *db, *dh, *dc;  // dh: gradient past weight_h, else 0
};
template <class T>
void rnn_step_backward(const RnnStepDims& d, const StepBackward<T>& at, cudaStream_t stream);

template <class T>
void place_step(const PlaceStepDims& d, const T* x, const std::int32_t* lengths, T* y, cudaStream_t stream);

}  // namespace echelon::cuda
