// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/norm.hpp"

namespace echelon::cuda {
namespace {

// y = scale * (x - mean) + beta of one channel, with scale = gamma / std, optionally followed by relu. Computed in
// Wide<T> in both directions, so that both cut off the same values.
template <class T>
struct Channel {
  using W = Wide<T>;
  W mean, scale, beta;

  __device__ W value(W centred) const { return scale * centred + beta; }
};

// gamma and beta may be null if they are not needed.
template <class T>
struct Channels {
  using W = Wide<T>;
  std::int64_t C;
  const double* stats;
  const W *gamma, *beta;
  bool relu;

  __device__ W istd(std::int64_t c) const { return static_cast<W>(stats[C + c]); }
  __device__ Channel<T> of(std::int64_t c) const {
    return {static_cast<W>(stats[c]), (gamma ? gamma[c] : W(1)) * istd(c), beta ? beta[c] : W(0)};
  }
};

template <class T>
struct Apply {
  Channels<T> all;
  struct Own {
    Channel<T> channel;
    bool relu;
    __device__ Wide<T> operator()(const Wide<T>* x) const {
      const Wide<T> value = channel.value(x[0] - channel.mean);
      return relu && value < 0 ? Wide<T>(0) : value;
    }
  };
  __device__ Own of(std::int64_t c) const { return {all.of(c), all.relu}; }
};

template <class T>
struct MomentTerms {
  struct Own {
    __device__ void operator()(std::int64_t, const Wide<T>* values, PackSum<T>* sums) const {
      const PackSum<T> value = values[0];
      sums[0] += value;
      sums[1] += value * value;
    }
  };
  __device__ Own of(std::int64_t) const { return {}; }
};

// Computes the terms dy and dy * (x - mean) from x and dy.
template <class T>
struct GradientTerms {
  Channels<T> all;
  struct Own {
    Channel<T> channel;
    bool relu;
    __device__ void operator()(std::int64_t, const Wide<T>* values, PackSum<T>* sums) const {
      const Wide<T> centred = values[0] - channel.mean;
      if (relu && channel.value(centred) <= 0) return;
      sums[0] += values[1];
      sums[1] += static_cast<PackSum<T>>(values[1]) * centred;
    }
  };
  __device__ Own of(std::int64_t c) const { return {all.of(c), all.relu}; }
};

// Computes dx from x and dy: scale * (dy - mean dy - xhat * mean dy*xhat).
template <class T>
struct ApplyBackward {
  Channels<T> all;
  const double* sums;
  double count;
  struct Own {
    Channel<T> channel;
    Wide<T> mean, product;
    bool relu;
    __device__ Wide<T> operator()(const Wide<T>* values) const {
      const Wide<T> centred = values[0] - channel.mean;
      const Wide<T> incoming = relu && channel.value(centred) <= 0 ? Wide<T>(0) : values[1];
      return channel.scale * (incoming - mean - centred * product);
    }
  };
  __device__ Own of(std::int64_t c) const {
    return {all.of(c), static_cast<Wide<T>>(sums[c] / count),
            static_cast<Wide<T>>(sums[all.C + c] / count) * all.istd(c), all.relu};
  }
};

template <class T>
struct Infer {
  const Wide<T>*gamma, *beta, *mean, *var;
  double epsilon;
  bool relu;
  __device__ typename Apply<T>::Own of(std::int64_t c) const {
    const double istd = 1.0 / ::sqrt(exact(var[c]) + epsilon);
    return {{mean[c], gamma[c] * static_cast<Wide<T>>(istd), beta[c]}, relu};
  }
};

}  // namespace

template <class T>
void norm_moments(const NormExtents& e, const T* x, double* sums, void* scratch, cudaStream_t stream) {
  const std::int64_t C = e.C;
  channel_sums<2>(e, inputs(x), scratch, stream, MomentTerms<T>{},
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
  map_channels(e, inputs(x), y, false, stream, Apply<T>{{e.C, stats, gamma, beta, e.relu}});
}

template <class T>
void norm_backward_sums(const NormExtents& e, const NormGradient<T>& g, double* sums, void* scratch,
                        cudaStream_t stream) {
  const std::int64_t C = e.C;
  const Channels<T> all{C, g.stats, g.gamma, g.beta, e.relu};
  channel_sums<2>(e, inputs(g.x, g.dy), scratch, stream, GradientTerms<T>{all},
                  [=] __device__(std::int64_t c, const double* totals) {
                    sums[c] = totals[0];
                    sums[C + c] = totals[1] * all.stats[C + c];
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
  const ApplyBackward<T> f{{e.C, g.stats, g.gamma, g.beta, e.relu}, sums, count};
  map_channels(e, inputs(g.x, g.dy), dx, add, stream, f);
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
  map_channels(e, inputs(x), y, false, stream, Infer<T>{gamma, beta, mean, var, epsilon, e.relu});
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
