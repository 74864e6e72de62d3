// SPDX-License-Identifier: Apache-2.0
// Launches of batch norm over (N, C, elems); formulas in device/ops/norm.hpp. T is any of ECHELON_CUDA_TYPES;
// parameters are Wide<T>; P is float or double, for ops without activations. Sums and statistics are (2, C)
// doubles. scratch: channel_scratch_bytes(e, 2).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/channel_sums.hpp"
#include "cuda/types.hpp"

namespace echelon::cuda {

struct NormExtents : ChannelExtents {
  bool relu = false;  // y = max(0, ..), and dy counts where y > 0
};

// The inputs of the gradient; gamma and beta are read only with relu.
template <class T>
struct NormGradient {
  const T *x, *dy;
  const double* stats;
  const Wide<T>*gamma, *beta;
};

// sums: sum x, sum x^2.
template <class T>
void norm_moments(const NormExtents& e, const T* x, double* sums, void* scratch, cudaStream_t stream);
// stats: mean, 1/std of sums over `count` values.
void norm_stats(std::int64_t C, const double* sums, double count, double epsilon, double* stats, cudaStream_t stream);
template <class T>
void norm_apply(const NormExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, const double* stats, T* y,
                cudaStream_t stream);
// sums: sum dy, sum dy*xhat.
template <class T>
void norm_backward_sums(const NormExtents& e, const NormGradient<T>& g, double* sums, void* scratch,
                        cudaStream_t stream);
// dgamma (+)= sums[1], dbeta (+)= sums[0].
template <class P>
void norm_parameter_gradients(std::int64_t C, const double* sums, P* dgamma, bool add_gamma, P* dbeta, bool add_beta,
                              cudaStream_t stream);
template <class T>
void norm_backward_apply(const NormExtents& e, const NormGradient<T>& g, const double* sums, double count, T* dx,
                         bool add, cudaStream_t stream);
template <class P>
void norm_statistics(std::int64_t C, const double* stats, double epsilon, double scale, double count, P* dmean,
                     bool add_mean, P* dvar, bool add_var, cudaStream_t stream);
template <class T>
void norm_inference(const NormExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, const Wide<T>* mean,
                    const Wide<T>* var, double epsilon, T* y, cudaStream_t stream);
// gamma2 = gamma*r, beta2 = beta + gamma*d; correction (2, C): r, d.
template <class P>
void norm_renorm(std::int64_t C, const double* sums, double count, double epsilon, double r_max, double d_max,
                 const P* gamma, const P* beta, const P* mean, const P* var, P* gamma2, P* beta2, P* correction,
                 cudaStream_t stream);
template <class P>
void norm_renorm_backward(std::int64_t C, const P* dgamma2, const P* dbeta2, const P* correction, P* dgamma,
                          bool add_gamma, P* dbeta, bool add_beta, cudaStream_t stream);

}  // namespace echelon::cuda
