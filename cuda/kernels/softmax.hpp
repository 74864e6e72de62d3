// SPDX-License-Identifier: Apache-2.0
// Launches of softmax cross-entropy over rows of (N, K), or over the places of (N, K, P); formulas in
// device/ops/softmax.hpp. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace echelon::cuda {

// `rows`: scratch of (N, 3) doubles. sums (3): loss, correct, weight, each summed over rows in a fixed order.
template <class T>
void softmax_forward(std::int64_t N, std::int64_t K, double smoothing, const T* logits, const std::int32_t* labels,
                     const T* weights, T* probs, double* rows, double* sums, bool add, cudaStream_t stream);
// Sums rows (N, 3) into sums (3), in a fixed order: the last step of every loss.
void sum_loss_rows(std::int64_t N, const double* rows, double* sums, bool add, cudaStream_t stream);
template <class T>
void softmax_backward(std::int64_t N, std::int64_t K, double smoothing, const T* probs, const std::int32_t* labels,
                      const T* weights, double scale, T* dlogits, bool add, cudaStream_t stream);
// The same with a label for each of P places. `rows`: scratch of (N * P, 3) doubles.
template <class T>
void softmax_places_forward(std::int64_t N, std::int64_t K, std::int64_t P, double smoothing, const T* logits,
                            const std::int32_t* labels, const T* weights, T* probs, double* rows, double* sums,
                            bool add, cudaStream_t stream);
template <class T>
void softmax_places_backward(std::int64_t N, std::int64_t K, std::int64_t P, double smoothing, const T* probs,
                             const std::int32_t* labels, const T* weights, double scale, T* dlogits, bool add,
                             cudaStream_t stream);

}  // namespace echelon::cuda
