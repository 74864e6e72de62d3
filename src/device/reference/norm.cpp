// SPDX-License-Identifier: Apache-2.0
// Batch norm: four ops whose sums may be added over ranks in between, the fused local pair, the two ops for its running
// statistics, and the two that correct it towards them (renorm).
#include <algorithm>
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Calls body(i) for the elements of channel c.
template <class Body>
void for_channel(const NormDims& d, std::int64_t c, Body&& body) {
  const std::int64_t plane = d.H * d.W;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t i = (n * d.C + c) * plane, end = i + plane; i < end; ++i) body(i);
}

double own_count(const NormDims& d) { return static_cast<double>(d.N * d.H * d.W); }
double group_count(const NormDims& d, const OpArgs& args) { return args.count > 0 ? args.count : own_count(d); }

// y = gamma * (x - mean) * istd + beta over one channel; with d.relu, at least 0.
template <class T>
void normalise_channel(const NormDims& d, std::int64_t c, const T* x, double mean, double istd, T gamma, T beta,
                       const Output<T>& y) {
  for_channel(d, c, [&](std::int64_t i) {
    const double value =
        static_cast<double>(gamma) * (static_cast<double>(x[i]) - mean) * istd + static_cast<double>(beta);
    y.put(i, d.relu && value < 0 ? 0 : value);
  });
}

// The gradient of relu's input: dy where its output, recomputed from x, is above 0. gamma, beta: null without relu.
template <class T>
class Incoming {
 public:
  Incoming(const NormDims& d, const T* x, const T* dy, const double* stats, const T* gamma, const T* beta)
      : d_(d), x_(x), dy_(dy), stats_(stats), gamma_(gamma), beta_(beta) {}
  double xhat(std::int64_t c, std::int64_t i) const {
    return (static_cast<double>(x_[i]) - stats_[c]) * stats_[d_.C + c];
  }
  double at(std::int64_t c, std::int64_t i) const {
    if (d_.relu && static_cast<double>(gamma_[c]) * xhat(c, i) + static_cast<double>(beta_[c]) <= 0) return 0;
    return static_cast<double>(dy_[i]);
  }

 private:
  const NormDims& d_;
  const T *x_, *dy_;
  const double* stats_;
  const T *gamma_, *beta_;
};

template <class T>
void moments(const NormDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const Output<double> sums(args, 1);
  for (std::int64_t c = 0; c < d.C; ++c) {
    double sum = 0, squares = 0;
    for_channel(d, c, [&](std::int64_t i) {
      const auto value = static_cast<double>(x[i]);
      sum += value;
      squares += value * value;
    });
    sums.put(c, sum);
    sums.put(d.C + c, squares);
  }
}

template <class T>
void normalise(const NormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *gamma = in<T>(args, 1), *beta = in<T>(args, 2);
  const double *sums = in<double>(args, 3), count = group_count(d, args);
  const Output<T> y(args, 4);
  const Output<double> stats(args, 5);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const double mean = sums[c] / count;
    const double var = std::max(0.0, sums[d.C + c] / count - mean * mean);
    const double istd = 1 / std::sqrt(var + d.epsilon);
    stats.put(c, mean);
    stats.put(d.C + c, istd);
    normalise_channel(d, c, x, mean, istd, gamma[c], beta[c], y);
  }
}

template <class T>
void local_forward(const NormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *gamma = in<T>(args, 1), *beta = in<T>(args, 2);
  const Output<T> y(args, 3);
  const Output<double> stats(args, 4);
  for (std::int64_t c = 0; c < d.C; ++c) {
    double mean = 0, var = 0;
    for_channel(d, c, [&](std::int64_t i) { mean += static_cast<double>(x[i]); });
    mean /= own_count(d);
    for_channel(d, c, [&](std::int64_t i) {
      const double apart = static_cast<double>(x[i]) - mean;
      var += apart * apart;
    });
    const double istd = 1 / std::sqrt(var / own_count(d) + d.epsilon);
    stats.put(c, mean);
    stats.put(d.C + c, istd);
    normalise_channel(d, c, x, mean, istd, gamma[c], beta[c], y);
  }
}

// Sums of dy and of dy * xhat over channel c.
struct Sums {
  double dy = 0, dy_xhat = 0;
};
template <class T>
Sums channel_sums(const NormDims& d, std::int64_t c, const Incoming<T>& dy) {
  Sums sums;
  for_channel(d, c, [&](std::int64_t i) {
    sums.dy += dy.at(c, i);
    sums.dy_xhat += dy.at(c, i) * dy.xhat(c, i);
  });
  return sums;
}

template <class T>
void apply_channel(const NormDims& d, std::int64_t c, const Incoming<T>& dy, double factor, Sums sums, double count,
                   const Output<T>& dx) {
  for_channel(d, c, [&](std::int64_t i) {
    dx.put(i, factor * (dy.at(c, i) - sums.dy / count - dy.xhat(c, i) * sums.dy_xhat / count));
  });
}

// x dy stats [gamma beta]
template <class T>
void backward_sums(const NormDims& d, const OpArgs& args) {
  const int outputs = d.relu ? 5 : 3;
  const Incoming<T> dy(d, in<T>(args, 0), in<T>(args, 1), in<double>(args, 2), d.relu ? in<T>(args, 3) : nullptr,
                       d.relu ? in<T>(args, 4) : nullptr);
  const Output<double> sums(args, outputs);
  const Output<T> dgamma(args, outputs + 1), dbeta(args, outputs + 2);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const Sums of_c = channel_sums(d, c, dy);
    sums.put(c, of_c.dy);
    sums.put(d.C + c, of_c.dy_xhat);
    dgamma.put(c, of_c.dy_xhat);
    dbeta.put(c, of_c.dy);
  }
}

// x dy stats gamma [beta] sums
template <class T>
void backward_apply(const NormDims& d, const OpArgs& args) {
  const int after = d.relu ? 5 : 4;
  const T* gamma = in<T>(args, 3);
  const double *stats = in<double>(args, 2), *sums = in<double>(args, after);
  const Incoming<T> dy(d, in<T>(args, 0), in<T>(args, 1), stats, gamma, d.relu ? in<T>(args, 4) : nullptr);
  const Output<T> dx(args, after + 1);
  for (std::int64_t c = 0; c < d.C; ++c)
    apply_channel(d, c, dy, static_cast<double>(gamma[c]) * stats[d.C + c], {sums[c], sums[d.C + c]},
                  group_count(d, args), dx);
}

// x dy stats gamma [beta]
template <class T>
void local_backward(const NormDims& d, const OpArgs& args) {
  const int outputs = d.relu ? 5 : 4;
  const T* gamma = in<T>(args, 3);
  const double* stats = in<double>(args, 2);
  const Incoming<T> dy(d, in<T>(args, 0), in<T>(args, 1), stats, gamma, d.relu ? in<T>(args, 4) : nullptr);
  const Output<T> dx(args, outputs), dgamma(args, outputs + 1), dbeta(args, outputs + 2);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const Sums sums = channel_sums(d, c, dy);
    dgamma.put(c, sums.dy_xhat);
    dbeta.put(c, sums.dy);
    apply_channel(d, c, dy, static_cast<double>(gamma[c]) * stats[d.C + c], sums, own_count(d), dx);
  }
}

template <class T>
void statistics(const NormDims& d, const OpArgs& args) {
  const double *stats = in<double>(args, 0), count = group_count(d, args);
  const Output<T> dmean(args, 1), dvar(args, 2);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const double istd = stats[d.C + c], var = std::max(0.0, 1 / (istd * istd) - d.epsilon);
    dmean.put(c, args.scale * stats[c]);
    dvar.put(c, args.scale * var * count / std::max(1.0, count - 1));
  }
}

template <class T>
void inference(const NormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *gamma = in<T>(args, 1), *beta = in<T>(args, 2);
  const T *mean = in<T>(args, 3), *var = in<T>(args, 4);
  const Output<T> y(args, 5);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const double istd = 1 / std::sqrt(static_cast<double>(var[c]) + d.epsilon);
    normalise_channel(d, c, x, static_cast<double>(mean[c]), istd, gamma[c], beta[c], y);
  }
}

// sums gamma beta mean var -> gamma2 beta2 correction
template <class T>
void renorm(const NormDims& d, const OpArgs& args) {
  const double *sums = in<double>(args, 0), count = group_count(d, args);
  const T *gamma = in<T>(args, 1), *beta = in<T>(args, 2), *mean = in<T>(args, 3), *var = in<T>(args, 4);
  const Output<T> gamma2(args, 5), beta2(args, 6), correction(args, 7);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const double own_mean = sums[c] / count, own_var = std::max(0.0, sums[d.C + c] / count - own_mean * own_mean);
    const double running_std = std::sqrt(static_cast<double>(var[c]) + d.epsilon);
    const double r = std::clamp(std::sqrt(own_var + d.epsilon) / running_std, 1 / d.r_max, d.r_max);
    const double shift = std::clamp((own_mean - static_cast<double>(mean[c])) / running_std, -d.d_max, d.d_max);
    gamma2.put(c, static_cast<double>(gamma[c]) * r);
    beta2.put(c, static_cast<double>(beta[c]) + static_cast<double>(gamma[c]) * shift);
    correction.put(c, r);
    correction.put(d.C + c, shift);
  }
}

// dgamma2 dbeta2 correction -> dgamma dbeta
template <class T>
void renorm_backward(const NormDims& d, const OpArgs& args) {
  const T *dgamma2 = in<T>(args, 0), *dbeta2 = in<T>(args, 1), *correction = in<T>(args, 2);
  const Output<T> dgamma(args, 3), dbeta(args, 4);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const auto r = static_cast<double>(correction[c]), shift = static_cast<double>(correction[d.C + c]);
    dgamma.put(c, r * static_cast<double>(dgamma2[c]) + shift * static_cast<double>(dbeta2[c]));
    dbeta.put(c, static_cast<double>(dbeta2[c]));
  }
}

}  // namespace

std::unique_ptr<Op> make_norm(const OpSpec& spec) {
  const auto d = std::get<NormDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    switch (spec.kind) {
      case OpKind::norm_moments: return loop_op([d](const OpArgs& a) { moments<T>(d, a); });
      case OpKind::norm_normalise: return loop_op([d](const OpArgs& a) { normalise<T>(d, a); });
      case OpKind::norm_backward_sums: return loop_op([d](const OpArgs& a) { backward_sums<T>(d, a); });
      case OpKind::norm_backward_apply: return loop_op([d](const OpArgs& a) { backward_apply<T>(d, a); });
      case OpKind::norm_local_forward: return loop_op([d](const OpArgs& a) { local_forward<T>(d, a); });
      case OpKind::norm_local_backward: return loop_op([d](const OpArgs& a) { local_backward<T>(d, a); });
      case OpKind::norm_statistics: return loop_op([d](const OpArgs& a) { statistics<T>(d, a); });
      case OpKind::norm_inference: return loop_op([d](const OpArgs& a) { inference<T>(d, a); });
      case OpKind::norm_renorm: return loop_op([d](const OpArgs& a) { renorm<T>(d, a); });
      case OpKind::norm_renorm_backward: return loop_op([d](const OpArgs& a) { renorm_backward<T>(d, a); });
      default: not_of_family(spec);
    }
  });
}

}  // namespace echelon::inline device::reference
