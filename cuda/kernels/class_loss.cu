// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/class_loss.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/softmax.hpp"

namespace echelon::cuda {
namespace {

// A block sums over the places of a class of a sample, or over their weights.
template <class T>
__global__ void __launch_bounds__(kThreads)
    overlap_kernel(std::int64_t N, std::int64_t K, std::int64_t P, const T* probs, const std::int32_t* labels,
                   const T* weights, double* overlaps) {
  for (std::int64_t at = blockIdx.x; at < N * (K + 1); at += gridDim.x) {
    const std::int64_t n = at / (K + 1), k = at % (K + 1);
    double overlap = 0, size = 0;
    for (std::int64_t i = threadIdx.x; i < P; i += kThreads) {
      const auto w = static_cast<double>(weights[n * P + i]);
      if (k == K) {
        overlap += w;
        continue;
      }
      const auto p = static_cast<double>(probs[(n * K + k) * P + i]);
      const bool own = labels[n * P + i] == k;
      overlap += own ? 2 * w * p : 0.0;
      size += w * (own ? p + 1 : p);
    }
    overlap = block_reduce(overlap, Plus{});
    size = block_reduce(size, Plus{});
    if (threadIdx.x == 0) {
      double* const to = overlaps + n * (2 * K + 1) + 2 * k;
      to[0] = overlap;
      if (k < K) to[1] = size;
    }
  }
}

template <class T>
void measure_overlaps(const ClassLossDims& d, const T* probs, const std::int32_t* labels, const T* weights,
                      double* overlaps, cudaStream_t stream) {
  launch(overlap_kernel<T>, grid_blocks(d.N * (d.K + 1), 1, 1 << 16), kThreads, stream, d.N, d.K, d.P, probs, labels,
         weights, overlaps);
}

}  // namespace

// A thread has one place, so that neighbouring threads read neighbouring logits. rows: loss, weight if the prediction
// is right, weight, of each place.
template <class T>
void class_loss_forward(const ClassLossDims& d, const T* logits, const std::int32_t* labels, const T* weights, T* probs,
                        double* scratch, double* sums, bool add, double* overlaps, cudaStream_t stream) {
  const std::int64_t K = d.K, P = d.P, places = d.N * d.P;
  const bool dice = d.loss == ClassLoss::dice;
  const double gamma = d.gamma;
  double* rows = scratch;
  each(places, stream, [=] __device__(std::int64_t at) {
    const std::int64_t first = at / P * K * P + at % P;
    const T* row = logits + first;
    std::int64_t most = 0;
    for (std::int64_t k = 0; k < K; ++k)
      if (row[k * P] > row[most * P]) most = k;
    const auto top = static_cast<double>(row[most * P]);
    double sum = 0;
    for (std::int64_t k = 0; k < K; ++k) sum += ::exp(static_cast<double>(row[k * P]) - top);
    for (std::int64_t k = 0; k < K; ++k)
      probs[first + k * P] = static_cast<T>(::exp(static_cast<double>(row[k * P]) - top) / sum);
    const auto weight = static_cast<double>(weights[at]);
    const double cross = ::log(sum) + top - static_cast<double>(row[labels[at] * P]);
    rows[at * 3] = dice ? 0.0 : weight * ::pow(-::expm1(-cross), gamma) * cross;
    rows[at * 3 + 1] = most == labels[at] ? weight : 0.0;
    rows[at * 3 + 2] = weight;
  });
  sum_loss_rows(places, rows, sums, add, stream);
  if (dice) measure_overlaps(d, probs, labels, weights, overlaps, stream);
}

void class_loss_join(const ClassLossDims& d, const double* own, const double* overlaps, double* scratch, double* sums,
                     bool add, cudaStream_t stream) {
  const std::int64_t K = d.K;
  each(d.N, stream, [=] __device__(std::int64_t n) {
    const double* all = overlaps + n * (2 * K + 1);
    double sum = 0;
    for (std::int64_t k = 0; k < K; ++k) sum += (all[2 * k] + 1) / (all[2 * k + 1] + 1);
    double* row = scratch + 3 * n;
    row[0] = own[n * (2 * K + 1) + 2 * K] * (1 - sum / static_cast<double>(K));
    row[1] = row[2] = 0;
  });
  sum_loss_rows(d.N, scratch, sums, add, stream);
}

template <class T>
void class_loss_backward(const ClassLossDims& d, const T* probs, const std::int32_t* labels, const T* weights,
                         const double* overlaps, double scale, T* dlogits, bool add, cudaStream_t stream) {
  const std::int64_t K = d.K, P = d.P;
  if (d.loss == ClassLoss::dice) {
    each(d.N * P, stream, [=] __device__(std::int64_t at) {
      const double* own = overlaps + at / P * (2 * K + 1);
      const std::int64_t first = at / P * K * P + at % P;
      const auto slope = [&](std::int64_t k) {
        const double size = own[2 * k + 1] + 1;
        return ((own[2 * k] + 1) / size - (labels[at] == k ? 2 : 0)) / size / static_cast<double>(K);
      };
      double mean = 0;
      for (std::int64_t k = 0; k < K; ++k) mean += static_cast<double>(probs[first + k * P]) * slope(k);
      const double factor = scale * own[2 * K] * static_cast<double>(weights[at]);
      for (std::int64_t k = 0; k < K; ++k) {
        const std::int64_t i = first + k * P;
        dlogits[i] =
            (add ? dlogits[i] : T(0)) + static_cast<T>(factor * static_cast<double>(probs[i]) * (slope(k) - mean));
      }
    });
    return;
  }
  const double gamma = d.gamma;
  each(d.N * P, stream, [=] __device__(std::int64_t at) {
    const std::int64_t first = at / P * K * P + at % P;
    const auto p = static_cast<double>(probs[first + labels[at] * P]);
    const double rest = p < 1 ? 1 - p : 0;
    double factor = ::pow(rest, gamma);
    if (gamma > 0 && rest > 0 && p > 0) factor -= gamma * p * ::pow(rest, gamma - 1) * ::log(p);
    factor *= scale * static_cast<double>(weights[at]);
    for (std::int64_t k = 0; k < K; ++k) {
      const std::int64_t i = first + k * P;
      const double apart = static_cast<double>(probs[i]) - (labels[at] == k ? 1 : 0);
      dlogits[i] = (add ? dlogits[i] : T(0)) + static_cast<T>(factor * apart);
    }
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void class_loss_forward<T>(const ClassLossDims&, const T*, const std::int32_t*, const T*, T*, double*,    \
                                      double*, bool, double*, cudaStream_t);                                         \
  template void class_loss_backward<T>(const ClassLossDims&, const T*, const std::int32_t*, const T*, const double*, \
                                       double, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
