// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/sequence.hpp"

namespace echelon::cuda {
namespace {

struct Most {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

// Rows of S positions, each handled by a warp or a block (each.cuh). A row's sums are complete before it is written, so
// `products` and `p` may share memory.
template <int kLanes, class T>
__global__ void __launch_bounds__(kThreads)
    attention_softmax_kernel(AttentionDims d, const std::int32_t* lengths, const Wide<T>* products, T* p) {
  const std::int64_t rows = d.N * d.heads * d.T;
  for (std::int64_t r = first_row(); r < rows; r += row_step()) {
    const Wide<T>* row = products + r * d.S;
    const std::int64_t t = r % d.T, length = lengths ? lengths[r / (d.heads * d.T)] : d.S;
    const std::int64_t seen = d.causal && t + 1 < length ? t + 1 : length;
    const double most = row_reduce<kLanes>(
        seen, exact(row[0]), [=](std::int64_t s) { return exact(row[s]); }, Most{});
    const double sum = row_reduce<kLanes>(
        seen, 0.0, [=](std::int64_t s) { return ::exp(exact(row[s]) - most); }, Plus{});
    for (std::int64_t s = threadIdx.x; s < d.S; s += kLanes)
      put(p + r * d.S + s, s < seen ? ::exp(exact(row[s]) - most) / sum : 0.0);
  }
}

template <int kLanes, class T>
__global__ void __launch_bounds__(kThreads)
    attention_softmax_backward_kernel(std::int64_t rows, std::int64_t S, const T* p, double scale, const Wide<T>* da,
                                      T* ds) {
  for (std::int64_t r = first_row(); r < rows; r += row_step()) {
    const T* weight = p + r * S;
    const Wide<T>* row = da + r * S;
    const double mean = row_reduce<kLanes>(
        S, 0.0, [=](std::int64_t s) { return exact(weight[s]) * exact(row[s]); }, Plus{});
    for (std::int64_t s = threadIdx.x; s < S; s += kLanes)
      put(ds + r * S + s, scale * exact(weight[s]) * (exact(row[s]) - mean));
  }
}

__device__ inline double pool_weight(SequencePool mode, std::int64_t t, std::int64_t length) {
  if (t >= length) return 0;
  if (mode == SequencePool::sum) return 1;
  if (mode == SequencePool::mean) return 1 / static_cast<double>(length);
  return t + 1 == length ? 1 : 0;
}

__device__ inline double value_loss_at(ValueLoss loss, double x, double t) {
  switch (loss) {
    case ValueLoss::squared: return (x - t) * (x - t);
    case ValueLoss::logistic: return (x > 0 ? x : 0) - x * t + ::log1p(::exp(-::fabs(x)));
    case ValueLoss::absolute: return ::fabs(x - t);
    case ValueLoss::hinge: break;
  }
  const double short_of = 1 - (t > 0.5 ? x : -x);
  return short_of > 0 ? short_of : 0;
}

__device__ inline double value_slope_at(ValueLoss loss, double x, double t) {
  switch (loss) {
    case ValueLoss::squared: return 2 * (x - t);
    case ValueLoss::logistic: return 1 / (1 + ::exp(-x)) - t;
    case ValueLoss::absolute: return (x > t ? 1 : 0) - (x < t ? 1 : 0);
    case ValueLoss::hinge: break;
  }
  return t > 0.5 ? (x < 1 ? -1 : 0) : (x > -1 ? 1 : 0);
}

}  // namespace

template <class T, class Target>
void value_loss_rows(const ValueLossDims& d, const T* x, const Target* targets, const T* weights, double* rows,
                     cudaStream_t stream) {
  const ValueLoss loss = d.loss;
  const bool of_two = is_of_two(loss);
  each(d.elems, stream, [=] __device__(std::int64_t e) {
    const double at = static_cast<double>(x[e]), t = static_cast<double>(targets[e]);
    const double w = static_cast<double>(weights[e]);
    rows[e * 3] = w * value_loss_at(loss, at, t);
    rows[e * 3 + 1] = of_two && (at > 0) == (t > 0.5) ? w : 0.0;
    rows[e * 3 + 2] = w;
  });
}

template <class T, class Target>
void value_loss_backward(const ValueLossDims& d, const T* x, const Target* targets, const T* weights, double scale,
                         T* dx, bool add, cudaStream_t stream) {
  const ValueLoss loss = d.loss;
  each(d.elems, stream, [=] __device__(std::int64_t e) {
    const double slope = value_slope_at(loss, static_cast<double>(x[e]), static_cast<double>(targets[e]));
    dx[e] = (add ? dx[e] : T(0)) + static_cast<T>(scale * static_cast<double>(weights[e]) * slope);
  });
}

template <class T>
void sequence_pool_forward(const SequencePoolDims& d, const T* x, const std::int32_t* lengths, T* y,
                           cudaStream_t stream) {
  const std::int64_t steps = d.T, F = d.F;
  const SequencePool mode = d.mode;
  each(d.N * F, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / F, f = i % F, length = lengths ? lengths[n] : steps;
    double sum = 0;
    for (std::int64_t t = 0; t < length; ++t) sum += pool_weight(mode, t, length) * exact(x[(n * steps + t) * F + f]);
    put(y + i, sum);
  });
}

template <class T>
void sequence_pool_backward(const SequencePoolDims& d, const T* dy, const std::int32_t* lengths, T* dx, bool add,
                            cudaStream_t stream) {
  const std::int64_t steps = d.T, F = d.F;
  const SequencePool mode = d.mode;
  each(d.N * steps * F, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / (steps * F), t = i / F % steps, f = i % F;
    const double weight = pool_weight(mode, t, lengths ? lengths[n] : steps);
    put(dx + i, weight * exact(dy[n * F + f]), add);
  });
}

template <class T>
void broadcast_add(std::int64_t N, std::int64_t elems, const T* x, const Wide<T>* w, T* y, cudaStream_t stream) {
  each(N * elems, stream, [=] __device__(std::int64_t i) { put(y + i, wide(x[i]) + w[i % elems]); });
}

template <class T>
void sum_samples(std::int64_t N, std::int64_t elems, const T* dy, Wide<T>* dw, bool add, cudaStream_t stream) {
  each(elems, stream, [=] __device__(std::int64_t e) {
    double sum = 0;
    for (std::int64_t n = 0; n < N; ++n) sum += exact(dy[n * elems + e]);
    put(dw + e, sum, add);
  });
}

template <class T>
void attention_softmax(const AttentionDims& d, const std::int32_t* lengths, const Wide<T>* products, T* p,
                       cudaStream_t stream) {
  by_lanes(d.S, [&]<int kLanes>(dim3 block) {
    const unsigned blocks = grid_blocks(d.N * d.heads * d.T, block.y, 1 << 16);
    launch(attention_softmax_kernel<kLanes, T>, blocks, block, stream, d, lengths, products, p);
  });
}

template <class T>
void attention_softmax_backward(const AttentionDims& d, const T* p, double scale, const Wide<T>* da, T* ds,
                                cudaStream_t stream) {
  const std::int64_t rows = d.N * d.heads * d.T;
  by_lanes(d.S, [&]<int kLanes>(dim3 block) {
    launch(attention_softmax_backward_kernel<kLanes, T>, grid_blocks(rows, block.y, 1 << 16), block, stream, rows, d.S,
           p, scale, da, ds);
  });
}

#define ECHELON_INSTANTIATE(T, Target)                                                                              \
  template void value_loss_rows<T, Target>(const ValueLossDims&, const T*, const Target*, const T*, double*,        \
                                           cudaStream_t);                                                           \
  template void value_loss_backward<T, Target>(const ValueLossDims&, const T*, const Target*, const T*, double, T*, \
                                               bool, cudaStream_t);
ECHELON_INSTANTIATE(float, float)
ECHELON_INSTANTIATE(double, double)
ECHELON_INSTANTIATE(float, std::int32_t)
ECHELON_INSTANTIATE(double, std::int32_t)
#undef ECHELON_INSTANTIATE

#define ECHELON_INSTANTIATE(T)                                                                                      \
  template void sequence_pool_forward<T>(const SequencePoolDims&, const T*, const std::int32_t*, T*, cudaStream_t); \
  template void sequence_pool_backward<T>(const SequencePoolDims&, const T*, const std::int32_t*, T*, bool,         \
                                          cudaStream_t);                                                            \
  template void broadcast_add<T>(std::int64_t, std::int64_t, const T*, const Wide<T>*, T*, cudaStream_t);           \
  template void sum_samples<T>(std::int64_t, std::int64_t, const T*, Wide<T>*, bool, cudaStream_t);                 \
  template void attention_softmax<T>(const AttentionDims&, const std::int32_t*, const Wide<T>*, T*, cudaStream_t);  \
  template void attention_softmax_backward<T>(const AttentionDims&, const T*, double, const Wide<T>*, T*, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
