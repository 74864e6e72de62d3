// Launches of batch norm over (N, C, elems); formulas in device/op_spec.hpp. T is float or double; sums and statistics
// are (2, C) doubles. scratch: channel_scratch_bytes(N, C, 2).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace echelon::cuda {

struct NormExtents {
  std::int64_t N, C, elems;
  bool relu = false;  // y = max(0, ..), and dy counts where y > 0
};

// What the gradient is told by: gamma and beta are read with relu alone.
template <class T>
struct NormGradient {
  const T *x, *dy;
  const double* stats;
  const T *gamma, *beta;
};

// sums: sum x, sum x^2.
template <class T>
void norm_moments(const NormExtents& e, const T* x, double* sums, void* scratch, cudaStream_t stream);
// stats: mean, 1/std of sums over `count` values.
void norm_stats(std::int64_t C, const double* sums, double count, double epsilon, double* stats, cudaStream_t stream);
template <class T>
void norm_apply(const NormExtents& e, const T* x, const T* gamma, const T* beta, const double* stats, T* y,
                cudaStream_t stream);
// sums: sum dy, sum dy*xhat.
template <class T>
void norm_backward_sums(const NormExtents& e, const NormGradient<T>& g, double* sums, void* scratch,
                        cudaStream_t stream);
// dgamma (+)= sums[1], dbeta (+)= sums[0].
template <class T>
void norm_parameter_gradients(std::int64_t C, const double* sums, T* dgamma, bool add_gamma, T* dbeta, bool add_beta,
                              cudaStream_t stream);
template <class T>
void norm_backward_apply(const NormExtents& e, const NormGradient<T>& g, const double* sums, double count, T* dx,
                         bool add, cudaStream_t stream);
template <class T>
void norm_statistics(std::int64_t C, const double* stats, double epsilon, double scale, double count, T* dmean,
                     bool add_mean, T* dvar, bool add_var, cudaStream_t stream);
template <class T>
void norm_inference(const NormExtents& e, const T* x, const T* gamma, const T* beta, const T* mean, const T* var,
                    double epsilon, T* y, cudaStream_t stream);
// gamma2 = gamma*r, beta2 = beta + gamma*d; correction (2, C): r, d.
template <class T>
void norm_renorm(std::int64_t C, const double* sums, double count, double epsilon, double r_max, double d_max,
                 const T* gamma, const T* beta, const T* mean, const T* var, T* gamma2, T* beta2, T* correction,
                 cudaStream_t stream);
template <class T>
void norm_renorm_backward(std::int64_t C, const T* dgamma2, const T* dbeta2, const T* correction, T* dgamma,
                          bool add_gamma, T* dbeta, bool add_beta, cudaStream_t stream);

}  // namespace echelon::cuda
