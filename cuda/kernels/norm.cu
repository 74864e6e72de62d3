#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/norm.hpp"

namespace echelon::cuda {
namespace {

template <class T>
__device__ double xhat_of(const NormGradient<T>& g, std::int64_t C, std::int64_t c, std::int64_t i) {
  return (static_cast<double>(g.x[i]) - g.stats[c]) * g.stats[C + c];
}

// dy, or 0 where relu gave 0.
template <class T>
__device__ double incoming(const NormGradient<T>& g, bool relu, double xhat, std::int64_t c, std::int64_t i) {
  if (relu && static_cast<double>(g.gamma[c]) * xhat + static_cast<double>(g.beta[c]) <= 0) return 0;
  return static_cast<double>(g.dy[i]);
}

}  // namespace

template <class T>
void norm_moments(const NormExtents& e, const T* x, double* sums, void* scratch, cudaStream_t stream) {
  const std::int64_t C = e.C;
  channel_sums<2>(
      e.N, e.C, e.elems, scratch, stream,
      [=] __device__(std::int64_t, std::int64_t i, double* partial) {
        const auto value = static_cast<double>(x[i]);
        partial[0] += value;
        partial[1] += value * value;
      },
      [=] __device__(std::int64_t c, const double* totals) {
        sums[c] = totals[0];
        sums[C + c] = totals[1];
      });
}

void norm_stats(std::int64_t C, const double* sums, double count, double epsilon, double* stats, cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const double mean = sums[c] / count;
    const double var = sums[C + c] / count - mean * mean;
    stats[c] = mean;
    stats[C + c] = 1.0 / ::sqrt((var > 0 ? var : 0.0) + epsilon);
  });
}

template <class T>
void norm_apply(const NormExtents& e, const T* x, const T* gamma, const T* beta, const double* stats, T* y,
                cudaStream_t stream) {
  const std::int64_t C = e.C;
  const bool relu = e.relu;
  each_plane(e.N, e.C, e.elems, stream, [=] __device__(std::int64_t c, std::int64_t i) {
    const double xhat = (static_cast<double>(x[i]) - stats[c]) * stats[C + c];
    const double value = static_cast<double>(gamma[c]) * xhat + static_cast<double>(beta[c]);
    y[i] = static_cast<T>(relu && value < 0 ? 0.0 : value);
  });
}

template <class T>
void norm_backward_sums(const NormExtents& e, const NormGradient<T>& g, double* sums, void* scratch,
                        cudaStream_t stream) {
  const std::int64_t C = e.C;
  const bool relu = e.relu;
  channel_sums<2>(
      e.N, e.C, e.elems, scratch, stream,
      [=] __device__(std::int64_t c, std::int64_t i, double* partial) {
        const double xhat = xhat_of(g, C, c, i), gradient = incoming(g, relu, xhat, c, i);
        partial[0] += gradient;
        partial[1] += gradient * xhat;
      },
      [=] __device__(std::int64_t c, const double* totals) {
        sums[c] = totals[0];
        sums[C + c] = totals[1];
      });
}

template <class T>
void norm_parameter_gradients(std::int64_t C, const double* sums, T* dgamma, bool add_gamma, T* dbeta, bool add_beta,
                              cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    dgamma[c] = (add_gamma ? dgamma[c] : T(0)) + static_cast<T>(sums[C + c]);
    dbeta[c] = (add_beta ? dbeta[c] : T(0)) + static_cast<T>(sums[c]);
  });
}

template <class T>
void norm_backward_apply(const NormExtents& e, const NormGradient<T>& g, const double* sums, double count, T* dx,
                         bool add, cudaStream_t stream) {
  const std::int64_t C = e.C;
  const bool relu = e.relu;
  each_plane(e.N, e.C, e.elems, stream, [=] __device__(std::int64_t c, std::int64_t i) {
    const double xhat = xhat_of(g, C, c, i);
    const double centred = incoming(g, relu, xhat, c, i) - sums[c] / count - xhat * (sums[C + c] / count);
    const T value = static_cast<T>(static_cast<double>(g.gamma[c]) * g.stats[C + c] * centred);
    dx[i] = (add ? dx[i] : T(0)) + value;
  });
}

template <class T>
void norm_statistics(std::int64_t C, const double* stats, double epsilon, double scale, double count, T* dmean,
                     bool add_mean, T* dvar, bool add_var, cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const double istd = stats[C + c];
    const double var = 1.0 / (istd * istd) - epsilon;
    const double unbiased = (var > 0 ? var : 0.0) * (count / (count > 2 ? count - 1 : 1.0));
    dmean[c] = (add_mean ? dmean[c] : T(0)) + static_cast<T>(scale * stats[c]);
    dvar[c] = (add_var ? dvar[c] : T(0)) + static_cast<T>(scale * unbiased);
  });
}

template <class T>
void norm_inference(const NormExtents& e, const T* x, const T* gamma, const T* beta, const T* mean, const T* var,
                    double epsilon, T* y, cudaStream_t stream) {
  const bool relu = e.relu;
  each_plane(e.N, e.C, e.elems, stream, [=] __device__(std::int64_t c, std::int64_t i) {
    const double istd = 1.0 / ::sqrt(static_cast<double>(var[c]) + epsilon);
    const double xhat = (static_cast<double>(x[i]) - static_cast<double>(mean[c])) * istd;
    const double value = static_cast<double>(gamma[c]) * xhat + static_cast<double>(beta[c]);
    y[i] = static_cast<T>(relu && value < 0 ? 0.0 : value);
  });
}

template <class T>
void norm_renorm(std::int64_t C, const double* sums, double count, double epsilon, double r_max, double d_max,
                 const T* gamma, const T* beta, const T* mean, const T* var, T* gamma2, T* beta2, T* correction,
                 cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const double own_mean = sums[c] / count, own_var = sums[C + c] / count - own_mean * own_mean;
    const double running_std = ::sqrt(static_cast<double>(var[c]) + epsilon);
    const double own_std = ::sqrt((own_var > 0 ? own_var : 0.0) + epsilon);
    const double r = ::fmin(::fmax(own_std / running_std, 1 / r_max), r_max);
    const double shift = ::fmin(::fmax((own_mean - static_cast<double>(mean[c])) / running_std, -d_max), d_max);
    gamma2[c] = static_cast<T>(static_cast<double>(gamma[c]) * r);
    beta2[c] = static_cast<T>(static_cast<double>(beta[c]) + static_cast<double>(gamma[c]) * shift);
    correction[c] = static_cast<T>(r);
    correction[C + c] = static_cast<T>(shift);
  });
}

template <class T>
void norm_renorm_backward(std::int64_t C, const T* dgamma2, const T* dbeta2, const T* correction, T* dgamma,
                          bool add_gamma, T* dbeta, bool add_beta, cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const T value = correction[c] * dgamma2[c] + correction[C + c] * dbeta2[c];
    dgamma[c] = (add_gamma ? dgamma[c] : T(0)) + value;
    dbeta[c] = (add_beta ? dbeta[c] : T(0)) + dbeta2[c];
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                      \
  template void norm_moments<T>(const NormExtents&, const T*, double*, void*, cudaStream_t);                        \
  template void norm_apply<T>(const NormExtents&, const T*, const T*, const T*, const double*, T*, cudaStream_t);   \
  template void norm_backward_sums<T>(const NormExtents&, const NormGradient<T>&, double*, void*, cudaStream_t);    \
  template void norm_parameter_gradients<T>(std::int64_t, const double*, T*, bool, T*, bool, cudaStream_t);         \
  template void norm_backward_apply<T>(const NormExtents&, const NormGradient<T>&, const double*, double, T*, bool, \
                                       cudaStream_t);                                                               \
  template void norm_statistics<T>(std::int64_t, const double*, double, double, double, T*, bool, T*, bool,         \
                                   cudaStream_t);                                                                   \
  template void norm_inference<T>(const NormExtents&, const T*, const T*, const T*, const T*, const T*, double, T*, \
                                  cudaStream_t);                                                                    \
  template void norm_renorm<T>(std::int64_t, const double*, double, double, double, double, const T*, const T*,     \
                               const T*, const T*, T*, T*, T*, cudaStream_t);                                       \
  template void norm_renorm_backward<T>(std::int64_t, const T*, const T*, const T*, T*, bool, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
