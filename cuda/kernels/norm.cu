#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/norm.hpp"

namespace echelon::cuda {
namespace {

template <class T>
__device__ double xhat_of(const NormGradient<T>& g, std::int64_t C, std::int64_t c, std::int64_t i) {
  return (exact(g.x[i]) - g.stats[c]) * g.stats[C + c];
}

// dy, or 0 where relu gave 0.
template <class T>
__device__ double incoming(const NormGradient<T>& g, bool relu, double xhat, std::int64_t c, std::int64_t i) {
  if (relu && exact(g.gamma[c]) * xhat + exact(g.beta[c]) <= 0) return 0;
  return exact(g.dy[i]);
}

}  // namespace

template <class T>
void norm_moments(const NormExtents& e, const T* x, double* sums, void* scratch, cudaStream_t stream) {
  const std::int64_t C = e.C;
  channel_sums<2>(
      e, scratch, stream,
      [=] __device__(std::int64_t, std::int64_t i, double* partial) {
        const auto value = exact(x[i]);
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
void norm_apply(const NormExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, const double* stats, T* y,
                cudaStream_t stream) {
  const std::int64_t C = e.C;
  const bool relu = e.relu;
  each_plane(e.N, e.C, e.elems, stream, [=] __device__(std::int64_t c, std::int64_t i) {
    const double xhat = (exact(x[i]) - stats[c]) * stats[C + c];
    const double value = exact(gamma[c]) * xhat + exact(beta[c]);
    put(y + i, relu && value < 0 ? 0.0 : value);
  });
}

template <class T>
void norm_backward_sums(const NormExtents& e, const NormGradient<T>& g, double* sums, void* scratch,
                        cudaStream_t stream) {
  const std::int64_t C = e.C;
  const bool relu = e.relu;
  channel_sums<2>(
      e, scratch, stream,
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

template <class P>
void norm_parameter_gradients(std::int64_t C, const double* sums, P* dgamma, bool add_gamma, P* dbeta, bool add_beta,
                              cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    put(dgamma + c, sums[C + c], add_gamma);
    put(dbeta + c, sums[c], add_beta);
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
    put(dx + i, exact(g.gamma[c]) * g.stats[C + c] * centred, add);
  });
}

template <class P>
void norm_statistics(std::int64_t C, const double* stats, double epsilon, double scale, double count, P* dmean,
                     bool add_mean, P* dvar, bool add_var, cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const double istd = stats[C + c];
    const double var = 1.0 / (istd * istd) - epsilon;
    const double unbiased = (var > 0 ? var : 0.0) * (count / (count > 2 ? count - 1 : 1.0));
    put(dmean + c, scale * stats[c], add_mean);
    put(dvar + c, scale * unbiased, add_var);
  });
}

template <class T>
void norm_inference(const NormExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, const Wide<T>* mean,
                    const Wide<T>* var, double epsilon, T* y, cudaStream_t stream) {
  const bool relu = e.relu;
  each_plane(e.N, e.C, e.elems, stream, [=] __device__(std::int64_t c, std::int64_t i) {
    const double istd = 1.0 / ::sqrt(exact(var[c]) + epsilon);
    const double xhat = (exact(x[i]) - exact(mean[c])) * istd;
    const double value = exact(gamma[c]) * xhat + exact(beta[c]);
    put(y + i, relu && value < 0 ? 0.0 : value);
  });
}

template <class P>
void norm_renorm(std::int64_t C, const double* sums, double count, double epsilon, double r_max, double d_max,
                 const P* gamma, const P* beta, const P* mean, const P* var, P* gamma2, P* beta2, P* correction,
                 cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const double own_mean = sums[c] / count, own_var = sums[C + c] / count - own_mean * own_mean;
    const double running_std = ::sqrt(exact(var[c]) + epsilon);
    const double own_std = ::sqrt((own_var > 0 ? own_var : 0.0) + epsilon);
    const double r = ::fmin(::fmax(own_std / running_std, 1 / r_max), r_max);
    const double shift = ::fmin(::fmax((own_mean - exact(mean[c])) / running_std, -d_max), d_max);
    gamma2[c] = static_cast<P>(exact(gamma[c]) * r);
    beta2[c] = static_cast<P>(exact(beta[c]) + exact(gamma[c]) * shift);
    correction[c] = static_cast<P>(r);
    correction[C + c] = static_cast<P>(shift);
  });
}

template <class P>
void norm_renorm_backward(std::int64_t C, const P* dgamma2, const P* dbeta2, const P* correction, P* dgamma,
                          bool add_gamma, P* dbeta, bool add_beta, cudaStream_t stream) {
  each(C, stream, [=] __device__(std::int64_t c) {
    const P value = correction[c] * dgamma2[c] + correction[C + c] * dbeta2[c];
    put(dgamma + c, value, add_gamma);
    put(dbeta + c, dbeta2[c], add_beta);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                      \
  template void norm_moments<T>(const NormExtents&, const T*, double*, void*, cudaStream_t);                        \
  template void norm_apply<T>(const NormExtents&, const T*, const Wide<T>*, const Wide<T>*, const double*, T*,      \
                              cudaStream_t);                                                                        \
  template void norm_backward_sums<T>(const NormExtents&, const NormGradient<T>&, double*, void*, cudaStream_t);    \
  template void norm_backward_apply<T>(const NormExtents&, const NormGradient<T>&, const double*, double, T*, bool, \
                                       cudaStream_t);                                                               \
  template void norm_inference<T>(const NormExtents&, const T*, const Wide<T>*, const Wide<T>*, const Wide<T>*,     \
                                  const Wide<T>*, double, T*, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

#define ECHELON_INSTANTIATE(P)                                                                                  \
  template void norm_parameter_gradients<P>(std::int64_t, const double*, P*, bool, P*, bool, cudaStream_t);     \
  template void norm_statistics<P>(std::int64_t, const double*, double, double, double, P*, bool, P*, bool,     \
                                   cudaStream_t);                                                               \
  template void norm_renorm<P>(std::int64_t, const double*, double, double, double, double, const P*, const P*, \
                               const P*, const P*, P*, P*, P*, cudaStream_t);                                   \
  template void norm_renorm_backward<P>(std::int64_t, const P*, const P*, const P*, P*, bool, P*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
