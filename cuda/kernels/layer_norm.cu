// One block a row; sums in double.
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/layer_norm.hpp"

namespace echelon::cuda {
namespace {

template <class F>
__device__ double row_sum(std::int64_t extent, F value) {
  return row_reduce(extent, 0.0, value, Plus{});
}

template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(RowExtents e, const T* x, const Wide<T>* gamma,
                                                           const Wide<T>* beta, double epsilon, T* y, double* stats) {
  const double F = static_cast<double>(e.F);
  for (std::int64_t r = blockIdx.x; r < e.rows; r += gridDim.x) {
    const T* row = x + r * e.F;
    const double mean = row_sum(e.F, [=](std::int64_t f) { return exact(row[f]); }) / F;
    const double squares = row_sum(e.F, [=](std::int64_t f) {
      const double centred = exact(row[f]) - mean;
      return centred * centred;
    });
    const double istd = 1.0 / ::sqrt(squares / F + epsilon);
    if (threadIdx.x == 0) {
      stats[r] = mean;
      stats[e.rows + r] = istd;
    }
    for (std::int64_t f = threadIdx.x; f < e.F; f += kThreads) {
      const double xhat = (exact(row[f]) - mean) * istd;
      put(y + r * e.F + f, exact(gamma[f]) * xhat + exact(beta[f]));
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(RowExtents e, const T* x, const T* dy, const double* stats, const Wide<T>* gamma, T* dx, bool add) {
  const double F = static_cast<double>(e.F);
  for (std::int64_t r = blockIdx.x; r < e.rows; r += gridDim.x) {
    const double mean = stats[r], istd = stats[e.rows + r];
    const T *row = x + r * e.F, *pull = dy + r * e.F;
    const auto g = [=](std::int64_t f) { return exact(gamma[f]) * exact(pull[f]); };
    const auto xhat = [=](std::int64_t f) { return (exact(row[f]) - mean) * istd; };
    const double sum = row_sum(e.F, g) / F;
    const double product = row_sum(e.F, [=](std::int64_t f) { return g(f) * xhat(f); }) / F;
    for (std::int64_t f = threadIdx.x; f < e.F; f += kThreads)
      put(dx + r * e.F + f, istd * (g(f) - sum - xhat(f) * product), add);
  }
}

}  // namespace

template <class T>
void layer_norm_forward(const RowExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, double epsilon,
                        T* y, double* stats, cudaStream_t stream) {
  launch(forward_kernel<T>, grid_blocks(e.rows, 1, 1 << 16), kThreads, stream, e, x, gamma, beta, epsilon, y, stats);
}

template <class T>
void layer_norm_backward(const RowExtents& e, const T* x, const T* dy, const double* stats, const Wide<T>* gamma, T* dx,
                         bool add, cudaStream_t stream) {
  launch(backward_kernel<T>, grid_blocks(e.rows, 1, 1 << 16), kThreads, stream, e, x, dy, stats, gamma, dx, add);
}

template <class T>
void layer_norm_parameter_gradients(const RowExtents& e, const T* x, const T* dy, const double* stats, Wide<T>* dgamma,
                                    bool add_gamma, Wide<T>* dbeta, bool add_beta, cudaStream_t stream) {
  const std::int64_t rows = e.rows, F = e.F;
  each(F, stream, [=] __device__(std::int64_t f) {
    double product = 0, sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double pull = exact(dy[r * F + f]);
      product += pull * ((exact(x[r * F + f]) - stats[r]) * stats[rows + r]);
      sum += pull;
    }
    put(dgamma + f, product, add_gamma);
    put(dbeta + f, sum, add_beta);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                         \
  template void layer_norm_forward<T>(const RowExtents&, const T*, const Wide<T>*, const Wide<T>*, double, T*,         \
                                      double*, cudaStream_t);                                                          \
  template void layer_norm_backward<T>(const RowExtents&, const T*, const T*, const double*, const Wide<T>*, T*, bool, \
                                       cudaStream_t);                                                                  \
  template void layer_norm_parameter_gradients<T>(const RowExtents&, const T*, const T*, const double*, Wide<T>*,      \
                                                  bool, Wide<T>*, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
