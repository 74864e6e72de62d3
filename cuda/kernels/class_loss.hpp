// SPDX-License-Identifier: Apache-2.0
// Launches of focal and Dice loss over the places of (N, K, P); formulas in device/ops/class_loss.hpp. T is float or
// double. Sums are in a fixed order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/ops/class_loss.hpp"

namespace echelon::cuda {

// sums (3): loss, correct, weight. scratch: 3 N P doubles, of the join 3 N. overlaps: null for focal loss.
template <class T>
void class_loss_forward(const ClassLossDims& d, const T* logits, const std::int32_t* labels, const T* weights, T* probs,
                        double* scratch, double* sums, bool add, double* overlaps, cudaStream_t stream);
void class_loss_join(const ClassLossDims& d, const double* own, const double* overlaps, double* scratch, double* sums,
                     bool add, cudaStream_t stream);
template <class T>
void class_loss_backward(const ClassLossDims& d, const T* probs, const std::int32_t* labels, const T* weights,
                         const double* overlaps, double scale, T* dlogits, bool add, cudaStream_t stream);

}  // namespace echelon::cuda
