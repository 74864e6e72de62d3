// SPDX-License-Identifier: Apache-2.0
// Launches of focal and Dice loss over the places of (N, K, P); formulas in device/ops/class_loss.hpp. T is float or
// double. Sums are in a fixed order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/ops/class_loss.hpp"

namespace echelon::cuda {

// Doubles of scratch that the launches below take.
std::size_t class_loss_forward_scratch(const ClassLossDims& d);
std::size_t class_loss_backward_scratch(const ClassLossDims& d);

// sums (3): loss, correct, weight.
template <class T>
void class_loss_forward(const ClassLossDims& d, const T* logits, const std::int32_t* labels, const T* weights, T* probs,
                        double* scratch, double* sums, bool add, cudaStream_t stream);
template <class T>
void class_loss_backward(const ClassLossDims& d, const T* probs, const std::int32_t* labels, const T* weights,
                         double* scratch, double scale, T* dlogits, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
