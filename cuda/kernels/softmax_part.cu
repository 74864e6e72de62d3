// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/larger.cuh"
#include "cuda/kernels/softmax.hpp"
#include "cuda/kernels/softmax_part.hpp"

namespace echelon::cuda {
namespace {

constexpr std::int64_t kPartials = SoftmaxPartDims::kPartials;

// One block per row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    softmax_part_kernel(std::int64_t N, std::int64_t K, std::int64_t first, std::int64_t classes, double smoothing,
                        const T* logits, const std::int32_t* labels, T* partials) {
  for (std::int64_t n = blockIdx.x; n < N; n += gridDim.x) {
    const T* row = logits + n * K;
    Largest mine{static_cast<double>(row[0]), 0};
    for (std::int64_t k = threadIdx.x; k < K; k += kThreads) mine = Larger{}(mine, {static_cast<double>(row[k]), k});
    const Largest largest = block_reduce(mine, Larger{});
    double part = 0, all = 0;
    for (std::int64_t k = threadIdx.x; k < K; k += kThreads) {
      part += ::exp(static_cast<double>(row[k]) - largest.value);
      all += static_cast<double>(row[k]);
    }
    const double sum = block_reduce(part, Plus{});
    const double logit_sum = smoothing > 0 ? block_reduce(all, Plus{}) : 0.0;
    if (threadIdx.x == 0) {
      const std::int64_t label = labels[n] - first;
      const bool here = label >= 0 && label < K;
      partials[n * kPartials] = static_cast<T>(largest.value);
      partials[n * kPartials + 1] = largest.index == label ? T(1) : T(0);
      partials[n * kPartials + 2] = static_cast<T>(sum);
      partials[n * kPartials + 3] = static_cast<T>((here ? (1 - smoothing) * static_cast<double>(row[label]) : 0.0) +
                                                   smoothing / static_cast<double>(classes) * logit_sum);
    }
  }
}

}  // namespace

template <class T>
void softmax_part(const SoftmaxPartDims& d, const T* logits, const std::int32_t* labels, T* partials,
                  cudaStream_t stream) {
  launch(softmax_part_kernel<T>, grid_blocks(d.N, 1, 1 << 16), kThreads, stream, d.N, d.K, d.first, d.classes,
         d.smoothing, logits, labels, partials);
}

template <class T>
void softmax_join(const SoftmaxPartDims& d, const T* partials, const T* weights, T* norms, double* rows, double* sums,
                  bool add, cudaStream_t stream) {
  const std::int64_t parts = d.parts;
  each(d.N, stream, [=] __device__(std::int64_t n) {
    const T* own = partials + n * parts * kPartials;
    std::int64_t first = 0;  // part with the largest logit
    for (std::int64_t p = 1; p < parts; ++p)
      if (own[p * kPartials] > own[first * kPartials]) first = p;
    const auto top = static_cast<double>(own[first * kPartials]);
    double sum = 0, target_logit = 0;
    for (std::int64_t p = 0; p < parts; ++p) {
      sum += static_cast<double>(own[p * kPartials + 2]) * ::exp(static_cast<double>(own[p * kPartials]) - top);
      target_logit += static_cast<double>(own[p * kPartials + 3]);
    }
    const double norm = top + ::log(sum);
    const auto weight = static_cast<double>(weights[n]);
    norms[n] = static_cast<T>(norm);
    rows[n * 3] = weight * (norm - target_logit);
    rows[n * 3 + 1] = weight * static_cast<double>(own[first * kPartials + 1]);
    rows[n * 3 + 2] = weight;
  });
  sum_loss_rows(d.N, rows, sums, add, stream);
}

template <class T>
void softmax_part_backward(const SoftmaxPartDims& d, const T* logits, const T* norms, const std::int32_t* labels,
                           const T* weights, double scale, T* dlogits, bool add, cudaStream_t stream) {
  const std::int64_t K = d.K, first = d.first;
  const double hit = 1 - d.smoothing, rest = d.smoothing / static_cast<double>(d.classes);
  each(d.N * K, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / K;
    const double target = (i % K == labels[n] - first ? hit : 0.0) + rest;
    const double prob = ::exp(static_cast<double>(logits[i]) - static_cast<double>(norms[n]));
    const double value = scale * static_cast<double>(weights[n]) * (prob - target);
    dlogits[i] = (add ? dlogits[i] : T(0)) + static_cast<T>(value);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                         \
  template void softmax_part<T>(const SoftmaxPartDims&, const T*, const std::int32_t*, T*, cudaStream_t);              \
  template void softmax_join<T>(const SoftmaxPartDims&, const T*, const T*, T*, double*, double*, bool, cudaStream_t); \
  template void softmax_part_backward<T>(const SoftmaxPartDims&, const T*, const T*, const std::int32_t*, const T*,    \
                                         double, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
