// SPDX-License-Identifier: Apache-2.0
// Batch norm by our own loops: the library has neither sums over a group of replicas nor sums in double. Elementwise
// passes are in f32, with coefficients of each channel prepared in double. T is the type of activations and their
// gradients, float or BHalf.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/check.hpp"
#include "device/onednn/channel_loops.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

// Returns the value unchanged, or in double.
template <class L, class Sums>
Sums as(const typename L::Floats& v) {
  if constexpr (std::is_same_v<Sums, typename L::Floats>)
    return v;
  else
    return L::widen(v);
}

// sum x, sum x^2
template <class T>
struct Moments {
  static constexpr bool kInRuns = std::is_same_v<T, BHalf>;
  const T* x;
  Moments at(std::int64_t, std::int64_t start) const { return {x + start}; }
  template <class L, bool kOneChannel, class Sums>
  void operator()(std::int64_t i, int, Sums& sum, Sums& squares) const {
    const Sums value = as<L, Sums>(L::load(x + i));
    sum += value;
    squares += value * value;
  }
};

// The coefficients of a channel in y = (x - mean) * factor + shift.
struct Scaling {
  const float *mean, *factor, *shift;
  Scaling at(std::int64_t c) const { return {mean + c, factor + c, shift + c}; }
};

// y = (x - mean) * factor + shift
template <class L, bool kOneChannel>
auto scaled(const Scaling& s, int lane, typename L::Floats x) {
  const auto of = [&](const float* values) { return of_channels<L, kOneChannel>(values + lane); };
  return (x - of(s.mean)) * of(s.factor) + of(s.shift);
}

template <class T, bool kRelu>
struct Scale {
  const T* x;
  Scaling s;
  T* y;
  Scale at(std::int64_t c, std::int64_t start) const { return {x + start, s.at(c), y + start}; }
  template <class L, bool kOneChannel>
  void operator()(std::int64_t i, int lane) const {
    auto value = scaled<L, kOneChannel>(s, lane, L::load(x + i));
    if constexpr (kRelu) value = value < 0.0f ? typename L::Floats{} : value;  // NaN stays NaN
    L::store(y + i, value);
  }
};

// sum dy, sum dy * (x - mean); with relu only over the x whose y is above 0.
template <class T, bool kRelu>
struct GradientSums {
  static constexpr bool kInRuns = std::is_same_v<T, BHalf>;
  const T *x, *dy;
  const double* mean;
  Scaling y;
  GradientSums at(std::int64_t c, std::int64_t start) const { return {x + start, dy + start, mean + c, y.at(c)}; }
  template <class L, bool kOneChannel, class Sums>
  void operator()(std::int64_t i, int lane, Sums& sum, Sums& products) const {
    const auto value = L::load(x + i);
    auto gradient = L::load(dy + i);
    if constexpr (kRelu) gradient = scaled<L, kOneChannel>(y, lane, value) > 0.0f ? gradient : typename L::Floats{};
    const Sums wide = as<L, Sums>(gradient);
    sum += wide;
    if constexpr (std::is_same_v<Sums, typename L::Floats>)
      products += wide * (value - of_channels<L, kOneChannel>(y.mean + lane));
    else
      products += wide * (L::widen(value) - of_channels<L, kOneChannel>(mean + lane));
  }
};

// dx = dy * of_dy - (x - mean) * of_x - constant
struct Pulling {
  const float *mean, *of_dy, *of_x, *constant;
  Pulling at(std::int64_t c) const { return {mean + c, of_dy + c, of_x + c, constant + c}; }
};
template <class T, bool kRelu, bool kAdd>
struct Pull {
  const T *x, *dy;
  Pulling p;
  Scaling y;
  T* dx;
  Pull at(std::int64_t c, std::int64_t start) const { return {x + start, dy + start, p.at(c), y.at(c), dx + start}; }
  template <class L, bool kOneChannel>
  void operator()(std::int64_t i, int lane) const {
    const auto of = [&](const float* values) { return of_channels<L, kOneChannel>(values + lane); };
    const auto value = L::load(x + i);
    auto gradient = L::load(dy + i);
    if constexpr (kRelu) gradient = scaled<L, kOneChannel>(y, lane, value) > 0.0f ? gradient : typename L::Floats{};
    auto pulled = gradient * of(p.of_dy) - (value - of(p.mean)) * of(p.of_x) - of(p.constant);
    if constexpr (kAdd) pulled += L::load(dx + i);
    L::store(dx + i, pulled);
  }
};

template <class T>
class Norm final : public Op {
 public:
  Norm(const Context& context, const OpSpec& spec)
      : kind_(spec.kind),
        d_(std::get<NormDims>(spec.dims)),
        planes_(d_.C, spec.layouts[0], std::is_same_v<T, BHalf> ? 32 : 16),
        pixels_(d_.H * d_.W),
        padded_((d_.C + kMaxLanes - 1) / kMaxLanes * kMaxLanes),
        channel_sums_(d_.N, d_.C, pixels_, planes_, context.threads),
        threads_(context.threads) {
    const auto channels = static_cast<std::size_t>(padded_);
    sums_ = plan_.take(2 * channels * sizeof(double));
    partial_ = plan_.take(channel_sums_.scratch_bytes());
    means_ = plan_.take(channels * sizeof(double));
    for (std::size_t& offset : coefficients_) offset = plan_.take(channels * sizeof(float));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    scratch_ = ScratchPlan::align(args.scratch);
    args_ = &args;
    switch (kind_) {
      case OpKind::norm_moments: return moments(doubles(1));
      case OpKind::norm_normalise: return normalise(doubles(3), count(), activation(4), doubles(5));
      case OpKind::norm_local_forward: {
        double* sums = at<double>(sums_);
        moments(sums);
        return normalise(sums, own_count(), activation(3), doubles(4));
      }
      case OpKind::norm_backward_sums: {
        const int outputs = d_.relu ? 5 : 3;
        backward_sums(doubles(outputs), d_.relu ? 3 : -1);
        return parameter_gradients(doubles(outputs), outputs + 1);
      }
      case OpKind::norm_backward_apply: {
        const int after = d_.relu ? 5 : 4;
        return backward_apply(doubles(after), count(), after + 1);
      }
      case OpKind::norm_local_backward: {
        const int outputs = d_.relu ? 5 : 4;
        double* sums = at<double>(sums_);
        backward_sums(sums, d_.relu ? 3 : -1);
        parameter_gradients(sums, outputs + 1);
        return backward_apply(sums, own_count(), outputs);
      }
      case OpKind::norm_statistics: return statistics();
      case OpKind::norm_renorm: return renorm();
      case OpKind::norm_renorm_backward: return renorm_backward();
      default: return inference();
    }
  }

 private:
  T* activation(int arg) const { return static_cast<T*>(args_->tensors[arg]); }
  float* floats(int arg) const { return static_cast<float*>(args_->tensors[arg]); }
  double* doubles(int arg) const { return static_cast<double*>(args_->tensors[arg]); }
  bool adds(int arg) const { return (args_->accumulate >> arg & 1U) != 0; }
  double own_count() const { return static_cast<double>(d_.N * pixels_); }
  double count() const { return args_->count > 0 ? args_->count : own_count(); }
  template <class Value>
  Value* at(std::size_t offset) const {
    return reinterpret_cast<Value*>(scratch_ + offset);
  }
  // One float per channel, zero for the padding of the last block.
  float* coefficient(int i) const {
    auto* values = at<float>(coefficients_[static_cast<std::size_t>(i)]);
    std::fill(values + d_.C, values + padded_, 0.0f);
    return values;
  }

  template <class Body>
  void each(const Body& body) const {
    walk(threads_, d_.N, d_.C, pixels_, planes_, body);
  }

  void moments(double* sums) const { channel_sums_.run(sums, at<double>(partial_), Moments<T>{activation(0)}); }

  void scale(const Scaling& s, T* y) const {
    const T* x = activation(0);
    d_.relu ? each(Scale<T, true>{x, s, y}) : each(Scale<T, false>{x, s, y});
  }

  // Computed from stats (2, C), with the same bits in forward and backward, so that both see a unit on the same side of
  // 0.
  Scaling scaling(const double* stats, const float* gamma, const float* beta) const {
    float *mean = coefficient(0), *factor = coefficient(1), *shift = coefficient(2);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double of_x = static_cast<double>(gamma[c]) * stats[d_.C + c];
      // The part of the mean that a float cannot represent is added to the shift.
      mean[c] = static_cast<float>(stats[c]);
      factor[c] = static_cast<float>(of_x);
      shift[c] = static_cast<float>(static_cast<double>(beta[c]) - (stats[c] - static_cast<double>(mean[c])) * of_x);
    }
    return {mean, factor, shift};
  }

  void normalise(const double* sums, double n, T* y, double* stats) const {
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double mean = sums[c] / n, variance = std::max(0.0, sums[d_.C + c] / n - mean * mean);
      stats[c] = mean;
      stats[d_.C + c] = 1.0 / std::sqrt(variance + d_.epsilon);
    }
    scale(scaling(stats, floats(1), floats(2)), y);
  }

  void inference() const {
    const float *gamma = floats(1), *beta = floats(2), *mean = floats(3), *variance = floats(4);
    float *mean_of = coefficient(0), *factor = coefficient(1), *shift = coefficient(2);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      mean_of[c] = mean[c];
      factor[c] =
          static_cast<float>(static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + d_.epsilon));
      shift[c] = beta[c];
    }
    scale({mean_of, factor, shift}, activation(5));
  }

  // sums = sum dy, sum dy * xhat. gamma is the index of its argument, with beta behind it; -1 without relu.
  void backward_sums(double* sums, int gamma) const {
    const T *x = activation(0), *dy = activation(1);
    const double* stats = doubles(2);
    auto *mean = at<double>(means_), *partial = at<double>(partial_);
    std::fill(std::copy(stats, stats + d_.C, mean), mean + padded_, 0.0);
    float* rounded_mean = coefficient(0);
    std::transform(stats, stats + d_.C, rounded_mean, [](double value) { return static_cast<float>(value); });
    if (gamma < 0)
      channel_sums_.run(sums, partial, GradientSums<T, false>{x, dy, mean, {rounded_mean, nullptr, nullptr}});
    else
      channel_sums_.run(sums, partial,
                        GradientSums<T, true>{x, dy, mean, scaling(stats, floats(gamma), floats(gamma + 1))});
    for (std::int64_t c = 0; c < d_.C; ++c) sums[d_.C + c] *= stats[d_.C + c];
  }

  void parameter_gradients(const double* sums, int first) const {
    float *dgamma = floats(first), *dbeta = floats(first + 1);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      dgamma[c] = (adds(first) ? dgamma[c] : 0.0f) + static_cast<float>(sums[d_.C + c]);
      dbeta[c] = (adds(first + 1) ? dbeta[c] : 0.0f) + static_cast<float>(sums[c]);
    }
  }

  // dx = gamma*istd * (dy - sums[0]/n - (x - mean)*istd * sums[1]/n)
  void backward_apply(const double* sums, double n, int output) const {
    const float* gamma = floats(3);
    const double* stats = doubles(2);
    float *mean = coefficient(0), *of_dy = coefficient(1), *of_x = coefficient(3), *constant = coefficient(4);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double istd = stats[d_.C + c], factor = static_cast<double>(gamma[c]) * istd;
      const double slope = factor * istd * sums[d_.C + c] / n;
      mean[c] = static_cast<float>(stats[c]);
      of_dy[c] = static_cast<float>(factor);
      of_x[c] = static_cast<float>(slope);
      constant[c] = static_cast<float>(factor * sums[c] / n - slope * (stats[c] - static_cast<double>(mean[c])));
    }
    const Pulling pulling{mean, of_dy, of_x, constant};
    const Scaling y = d_.relu ? scaling(stats, gamma, floats(4)) : Scaling{};
    d_.relu ? pull<true>(pulling, y, output) : pull<false>(pulling, y, output);
  }

  template <bool kRelu>
  void pull(const Pulling& p, const Scaling& y, int output) const {
    const T *x = activation(0), *dy = activation(1);
    T* dx = activation(output);
    adds(output) ? each(Pull<T, kRelu, true>{x, dy, p, y, dx}) : each(Pull<T, kRelu, false>{x, dy, p, y, dx});
  }

  void statistics() const {
    const double* stats = doubles(0);
    float *dmean = floats(1), *dvar = floats(2);
    const double n = count(), unbiased = n / std::max(1.0, n - 1.0);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double istd = stats[d_.C + c], variance = std::max(0.0, 1.0 / (istd * istd) - d_.epsilon);
      dmean[c] = (adds(1) ? dmean[c] : 0.0f) + static_cast<float>(args_->scale * stats[c]);
      dvar[c] = (adds(2) ? dvar[c] : 0.0f) + static_cast<float>(args_->scale * variance * unbiased);
    }
  }

  // sums gamma beta mean var -> gamma2 beta2 correction
  void renorm() const {
    const double *sums = doubles(0), n = count();
    const float *gamma = floats(1), *beta = floats(2), *running_mean = floats(3), *running_variance = floats(4);
    float *gamma2 = floats(5), *beta2 = floats(6), *correction = floats(7);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double mean = sums[c] / n, variance = std::max(0.0, sums[d_.C + c] / n - mean * mean);
      const double running_std = std::sqrt(static_cast<double>(running_variance[c]) + d_.epsilon);
      const double r = std::clamp(std::sqrt(variance + d_.epsilon) / running_std, 1 / d_.r_max, d_.r_max);
      const double apart = (mean - static_cast<double>(running_mean[c])) / running_std;
      const double shift = std::clamp(apart, -d_.d_max, d_.d_max), scale = static_cast<double>(gamma[c]);
      gamma2[c] = static_cast<float>(scale * r);
      beta2[c] = static_cast<float>(static_cast<double>(beta[c]) + scale * shift);
      correction[c] = static_cast<float>(r);
      correction[d_.C + c] = static_cast<float>(shift);
    }
  }

  // dgamma2 dbeta2 correction -> dgamma dbeta
  void renorm_backward() const {
    const float *dgamma2 = floats(0), *dbeta2 = floats(1), *r = floats(2), *shift = r + d_.C;
    float *dgamma = floats(3), *dbeta = floats(4);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      dgamma[c] = (adds(3) ? dgamma[c] : 0.0f) + r[c] * dgamma2[c] + shift[c] * dbeta2[c];
      dbeta[c] = (adds(4) ? dbeta[c] : 0.0f) + dbeta2[c];
    }
  }

  OpKind kind_;
  NormDims d_;
  Planes planes_;
  std::int64_t pixels_;
  std::int64_t padded_;  // number of channels, rounded up to the lanes of the widest block
  ChannelSums channel_sums_;
  int threads_;
  ScratchPlan plan_;
  std::size_t sums_, partial_, means_;
  std::array<std::size_t, 5> coefficients_;
  std::byte* scratch_ = nullptr;  // scratch of the current call
  const OpArgs* args_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> make_norm(Context& context, const OpSpec& spec) {
  return make_stored<Norm>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
