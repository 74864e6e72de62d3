// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/larger.cuh"
#include "cuda/kernels/softmax.hpp"

namespace echelon::cuda {
namespace {

// One block per row. rows (N, 3): weighted loss, weight if the prediction is right, weight.
template <class T>
__global__ void __launch_bounds__(kThreads)
    softmax_row_kernel(std::int64_t N, std::int64_t K, double smoothing, const T* logits, const std::int32_t* labels,
                       const T* weights, T* probs, double* rows) {
  for (std::int64_t n = blockIdx.x; n < N; n += gridDim.x) {
    const T* row = logits + n * K;
    // Threads without a column repeat the first one, which changes neither value nor index.
    Largest mine{static_cast<double>(row[0]), 0};
    for (std::int64_t k = threadIdx.x; k < K; k += kThreads) mine = Larger{}(mine, {static_cast<double>(row[k]), k});
    const Largest largest = block_reduce(mine, Larger{});
    double part = 0;
    for (std::int64_t k = threadIdx.x; k < K; k += kThreads) part += ::exp(static_cast<double>(row[k]) - largest.value);
    const double sum = block_reduce(part, Plus{});
    double logit_sum = 0;
    if (smoothing > 0) {
      part = 0;
      for (std::int64_t k = threadIdx.x; k < K; k += kThreads) part += static_cast<double>(row[k]);
      logit_sum = block_reduce(part, Plus{});
    }
    for (std::int64_t k = threadIdx.x; k < K; k += kThreads)
      probs[n * K + k] = static_cast<T>(::exp(static_cast<double>(row[k]) - largest.value) / sum);
    if (threadIdx.x == 0) {
      const std::int64_t label = labels[n];
      const auto weight = static_cast<double>(weights[n]);
      const double target_logit =  // sum of target * logit
          (1 - smoothing) * static_cast<double>(row[label]) + smoothing / static_cast<double>(K) * logit_sum;
      rows[n * 3] = weight * (::log(sum) + largest.value - target_logit);
      rows[n * 3 + 1] = largest.index == label ? weight : 0.0;
      rows[n * 3 + 2] = weight;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    sum_rows_kernel(std::int64_t N, const double* rows, double* sums, bool add) {
  for (int s = 0; s < 3; ++s) {
    double part = 0;
    for (std::int64_t n = threadIdx.x; n < N; n += kThreads) part += rows[n * 3 + s];
    const double sum = block_reduce(part, Plus{});
    if (threadIdx.x == 0) sums[s] = (add ? sums[s] : 0.0) + sum;
  }
}

}  // namespace

void sum_loss_rows(std::int64_t N, const double* rows, double* sums, bool add, cudaStream_t stream) {
  launch(sum_rows_kernel, 1, kThreads, stream, N, rows, sums, add);
}

template <class T>
void softmax_forward(std::int64_t N, std::int64_t K, double smoothing, const T* logits, const std::int32_t* labels,
                     const T* weights, T* probs, double* rows, double* sums, bool add, cudaStream_t stream) {
  launch(softmax_row_kernel<T>, grid_blocks(N, 1, 1 << 16), kThreads, stream, N, K, smoothing, logits, labels, weights,
         probs, rows);
  sum_loss_rows(N, rows, sums, add, stream);
}

template <class T>
void softmax_backward(std::int64_t N, std::int64_t K, double smoothing, const T* probs, const std::int32_t* labels,
                      const T* weights, double scale, T* dlogits, bool add, cudaStream_t stream) {
  each(N * K, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / K;
    const double target = (i % K == labels[n] ? 1 - smoothing : 0.0) + smoothing / static_cast<double>(K);
    const double value = scale * static_cast<double>(weights[n]) * (static_cast<double>(probs[i]) - target);
    dlogits[i] = (add ? dlogits[i] : T(0)) + static_cast<T>(value);
  });
}

// A thread has one place, so that neighbouring threads read neighbouring logits.
template <class T>
void softmax_places_forward(std::int64_t N, std::int64_t K, std::int64_t P, double smoothing, const T* logits,
                            const std::int32_t* labels, const T* weights, T* probs, double* rows, double* sums,
                            bool add, cudaStream_t stream) {
  each(N * P, stream, [=] __device__(std::int64_t at) {
    const std::int64_t first = at / P * K * P + at % P;
    const T* row = logits + first;
    std::int64_t most = 0;
    double logit_sum = 0, sum = 0;
    for (std::int64_t k = 0; k < K; ++k) {
      if (row[k * P] > row[most * P]) most = k;
      logit_sum += static_cast<double>(row[k * P]);
    }
    const auto top = static_cast<double>(row[most * P]);
    for (std::int64_t k = 0; k < K; ++k) sum += ::exp(static_cast<double>(row[k * P]) - top);
    for (std::int64_t k = 0; k < K; ++k)
      probs[first + k * P] = static_cast<T>(::exp(static_cast<double>(row[k * P]) - top) / sum);
    const auto weight = static_cast<double>(weights[at]);
    const double target_logit =  // sum of target * logit
        (1 - smoothing) * static_cast<double>(row[labels[at] * P]) + smoothing / static_cast<double>(K) * logit_sum;
    rows[at * 3] = weight * (::log(sum) + top - target_logit);
    rows[at * 3 + 1] = most == labels[at] ? weight : 0.0;
    rows[at * 3 + 2] = weight;
  });
  sum_loss_rows(N * P, rows, sums, add, stream);
}

template <class T>
void softmax_places_backward(std::int64_t N, std::int64_t K, std::int64_t P, double smoothing, const T* probs,
                             const std::int32_t* labels, const T* weights, double scale, T* dlogits, bool add,
                             cudaStream_t stream) {
  each(N * K * P, stream, [=] __device__(std::int64_t i) {
    const std::int64_t at = i / (K * P) * P + i % P, k = i / P % K;
    const double target = (k == labels[at] ? 1 - smoothing : 0.0) + smoothing / static_cast<double>(K);
    const double value = scale * static_cast<double>(weights[at]) * (static_cast<double>(probs[i]) - target);
    dlogits[i] = (add ? dlogits[i] : T(0)) + static_cast<T>(value);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                      \
  template void softmax_forward<T>(std::int64_t, std::int64_t, double, const T*, const std::int32_t*, const T*, T*, \
                                   double*, double*, bool, cudaStream_t);                                           \
  template void softmax_backward<T>(std::int64_t, std::int64_t, double, const T*, const std::int32_t*, const T*,    \
                                    double, T*, bool, cudaStream_t);                                                \
  template void softmax_places_forward<T>(std::int64_t, std::int64_t, std::int64_t, double, const T*,               \
                                          const std::int32_t*, const T*, T*, double*, double*, bool, cudaStream_t); \
  template void softmax_places_backward<T>(std::int64_t, std::int64_t, std::int64_t, double, const T*,              \
                                           const std::int32_t*, const T*, double, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
