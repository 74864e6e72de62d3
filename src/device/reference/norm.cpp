// Batch norm: four ops whose sums may be added over ranks in between, the fused local pair, and the two that carry its
// running statistics.
#include <algorithm>
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::reference {
namespace {

// body(i) for the elements of channel c.
template <class Body>
void for_channel(const NormDims& d, std::int64_t c, Body&& body) {
  const std::int64_t plane = d.H * d.W;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t i = (n * d.C + c) * plane, end = i + plane; i < end; ++i) body(i);
}

double own_count(const NormDims& d) { return static_cast<double>(d.N * d.H * d.W); }
double group_count(const NormDims& d, const OpArgs& args) { return args.count > 0 ? args.count : own_count(d); }

// y = gamma * (x - mean) * istd + beta over one channel.
template <class T>
void normalise_channel(const NormDims& d, std::int64_t c, const T* x, double mean, double istd, T gamma, T beta,
                       const Output<T>& y) {
  for_channel(d, c, [&](std::int64_t i) {
    y.put(i, static_cast<double>(gamma) * (static_cast<double>(x[i]) - mean) * istd + static_cast<double>(beta));
  });
}

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
Sums channel_sums(const NormDims& d, std::int64_t c, const T* x, const T* dy, const double* stats) {
  Sums sums;
  for_channel(d, c, [&](std::int64_t i) {
    const auto gradient = static_cast<double>(dy[i]);
    sums.dy += gradient;
    sums.dy_xhat += gradient * (static_cast<double>(x[i]) - stats[c]) * stats[d.C + c];
  });
  return sums;
}

template <class T>
void apply_channel(const NormDims& d, std::int64_t c, const T* x, const T* dy, const double* stats, T gamma, Sums sums,
                   double count, const Output<T>& dx) {
  const double mean = stats[c], istd = stats[d.C + c];
  for_channel(d, c, [&](std::int64_t i) {
    const double xhat = (static_cast<double>(x[i]) - mean) * istd;
    const double centred = static_cast<double>(dy[i]) - sums.dy / count - xhat * sums.dy_xhat / count;
    dx.put(i, static_cast<double>(gamma) * istd * centred);
  });
}

template <class T>
void backward_sums(const NormDims& d, const OpArgs& args) {
  const Output<double> sums(args, 3);
  const Output<T> dgamma(args, 4), dbeta(args, 5);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const Sums of_c = channel_sums(d, c, in<T>(args, 0), in<T>(args, 1), in<double>(args, 2));
    sums.put(c, of_c.dy);
    sums.put(d.C + c, of_c.dy_xhat);
    dgamma.put(c, of_c.dy_xhat);
    dbeta.put(c, of_c.dy);
  }
}

template <class T>
void backward_apply(const NormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *dy = in<T>(args, 1), *gamma = in<T>(args, 3);
  const double *stats = in<double>(args, 2), *sums = in<double>(args, 4);
  const Output<T> dx(args, 5);
  for (std::int64_t c = 0; c < d.C; ++c)
    apply_channel(d, c, x, dy, stats, gamma[c], {sums[c], sums[d.C + c]}, group_count(d, args), dx);
}

template <class T>
void local_backward(const NormDims& d, const OpArgs& args) {
  const T *x = in<T>(args, 0), *dy = in<T>(args, 1), *gamma = in<T>(args, 3);
  const double* stats = in<double>(args, 2);
  const Output<T> dx(args, 4), dgamma(args, 5), dbeta(args, 6);
  for (std::int64_t c = 0; c < d.C; ++c) {
    const Sums sums = channel_sums(d, c, x, dy, stats);
    dgamma.put(c, sums.dy_xhat);
    dbeta.put(c, sums.dy);
    apply_channel(d, c, x, dy, stats, gamma[c], sums, own_count(d), dx);
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
      default: not_of_family(spec);
    }
  });
}

}  // namespace echelon::reference
