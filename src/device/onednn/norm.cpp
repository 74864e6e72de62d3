// Batch norm by own loops: the library's has neither sums over a group of replicas nor double sums.
//
// Sums run in double over a fixed number of parts of the batch, which are then added in order: the number of threads
// changes no bit. Elementwise passes are f32 with coefficients of each channel prepared in double.
#include <cmath>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::onednn {
namespace {

constexpr std::int64_t kParts = 16;  // of the batch, at most; enough for the cores of one rank

struct Pair {
  double first, second;
};

// Adds term(float index, lane) of every pixel of a plane to first[lane], second[lane].
template <int kLanes, class Term>
void add_plane(std::int64_t pixels, std::int64_t pixel, const Term& term, double* first, double* second) {
  if constexpr (kLanes == 1) {
    double a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (std::int64_t i = 0; i < pixels; ++i) {
      const Pair t = term(i * pixel, 0);
      a += t.first;
      b += t.second;
    }
    *first += a;
    *second += b;
  } else {
    double a[kLanes] = {}, b[kLanes] = {};
    for (std::int64_t i = 0; i < pixels; ++i) {
      for (int l = 0; l < kLanes; ++l) {
        const Pair t = term(i * pixel + l, l);
        a[l] += t.first;
        b[l] += t.second;
      }
    }
    for (int l = 0; l < kLanes; ++l) first[l] += a[l], second[l] += b[l];
  }
}

class Norm final : public Op {
 public:
  Norm(const Context& context, const OpSpec& spec)
      : kind_(spec.kind),
        d_(std::get<NormDims>(spec.dims)),
        planes_(d_.C, spec.layouts[0]),
        pixels_(d_.H * d_.W),
        padded_((d_.C + kMaxLanes - 1) / kMaxLanes * kMaxLanes),
        parts_(std::min(d_.N, kParts)),
        threads_(context.threads) {
    const auto channels = static_cast<std::size_t>(padded_);
    sums_ = plan_.take(2 * channels * sizeof(double));
    partial_ = plan_.take(static_cast<std::size_t>(parts_) * 2 * channels * sizeof(double));
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
      case OpKind::norm_normalise: return normalise(doubles(3), count(), floats(4), doubles(5));
      case OpKind::norm_local_forward: {
        double* sums = at<double>(sums_);
        moments(sums);
        return normalise(sums, own_count(), floats(3), doubles(4));
      }
      case OpKind::norm_backward_sums: {
        backward_sums(doubles(3));
        return parameter_gradients(doubles(3), 4);
      }
      case OpKind::norm_backward_apply: return backward_apply(doubles(4), count(), 5);
      case OpKind::norm_local_backward: {
        double* sums = at<double>(sums_);
        backward_sums(sums);
        parameter_gradients(sums, 5);
        return backward_apply(sums, own_count(), 4);
      }
      case OpKind::norm_statistics: return statistics();
      default: return inference();
    }
  }

 private:
  float* floats(int arg) const { return static_cast<float*>(args_->tensors[arg]); }
  double* doubles(int arg) const { return static_cast<double*>(args_->tensors[arg]); }
  bool adds(int arg) const { return (args_->accumulate >> arg & 1U) != 0; }
  double own_count() const { return static_cast<double>(d_.N * pixels_); }
  double count() const { return args_->count > 0 ? args_->count : own_count(); }
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(scratch_ + offset);
  }
  // One float a channel, zero for the padding of the last block.
  float* coefficient(int i) const {
    auto* values = at<float>(coefficients_[static_cast<std::size_t>(i)]);
    std::fill(values + d_.C, values + padded_, 0.0f);
    return values;
  }

  // to (2, C) = sums over all pixels of term(c, float index, lane), c the first channel of the plane.
  template <class Term>
  void channel_sums(double* to, const Term& term) const {
    auto* partial = at<double>(partial_);
    std::fill(partial, partial + parts_ * 2 * padded_, 0.0);
    const std::int64_t groups = planes_.groups();
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * pixels_ * d_.C >= kParallelElems)
    for (std::int64_t i = 0; i < parts_ * groups; ++i) {
      const std::int64_t part = i / groups;
      planes_.visit(i % groups, [&]<int kLanes>(std::int64_t c) {
        double* first = partial + part * 2 * padded_ + c;
        for (std::int64_t n = part * d_.N / parts_; n < (part + 1) * d_.N / parts_; ++n) {
          const std::int64_t start = planes_.offset(n, c, pixels_);
          add_plane<kLanes>(
              pixels_, planes_.pixel(), [&](std::int64_t index, int l) { return term(c, start + index, l); }, first,
              first + padded_);
        }
      });
    }
    for (int row = 0; row < 2; ++row) {
      for (std::int64_t c = 0; c < d_.C; ++c) {
        double sum = 0;
        for (std::int64_t part = 0; part < parts_; ++part) sum += partial[(part * 2 + row) * padded_ + c];
        to[row * d_.C + c] = sum;
      }
    }
  }

  // to(float index, channel) for every float of the activation, padding included.
  template <class Body>
  void elementwise(const Body& body) const {
    for_each_plane(threads_, d_.N, planes_, d_.N * d_.C * pixels_, [&]<int kLanes>(std::int64_t n, std::int64_t c) {
      const std::int64_t start = planes_.offset(n, c, pixels_), pixel = planes_.pixel();
      if constexpr (kLanes == 1) {
#pragma omp simd
        for (std::int64_t i = 0; i < pixels_; ++i) body(start + i * pixel, c);
      } else {
        for (std::int64_t i = 0; i < pixels_; ++i)
#pragma omp simd
          for (int l = 0; l < kLanes; ++l) body(start + i * pixel + l, c + l);
      }
    });
  }

  void moments(double* sums) const {
    const float* x = floats(0);
    channel_sums(sums, [x](std::int64_t, std::int64_t index, int) {
      const double value = static_cast<double>(x[index]);
      return Pair{value, value * value};
    });
  }

  // y = (x - mean) * factor + shift
  void scale_and_shift(const float* x, const float* mean, const float* factor, const float* shift, float* y) const {
    elementwise([=](std::int64_t i, std::int64_t c) { y[i] = (x[i] - mean[c]) * factor[c] + shift[c]; });
  }

  void normalise(const double* sums, double n, float* y, double* stats) const {
    const float *gamma = floats(1), *beta = floats(2);
    float *mean = coefficient(0), *factor = coefficient(1), *shift = coefficient(2);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double m = sums[c] / n, variance = std::max(0.0, sums[d_.C + c] / n - m * m);
      const double istd = 1.0 / std::sqrt(variance + d_.epsilon);
      stats[c] = m;
      stats[d_.C + c] = istd;
      // The part of the mean that a float cannot hold goes into the shift.
      mean[c] = static_cast<float>(m);
      factor[c] = static_cast<float>(static_cast<double>(gamma[c]) * istd);
      shift[c] = static_cast<float>(static_cast<double>(beta[c]) -
                                    (m - static_cast<double>(mean[c])) * static_cast<double>(gamma[c]) * istd);
    }
    scale_and_shift(floats(0), mean, factor, shift, y);
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
    scale_and_shift(floats(0), mean_of, factor, shift, floats(5));
  }

  // sums = sum dy, sum dy * xhat
  void backward_sums(double* sums) const {
    const float *x = floats(0), *dy = floats(1);
    const double* stats = doubles(2);
    auto* mean = at<double>(means_);
    std::fill(std::copy(stats, stats + d_.C, mean), mean + padded_, 0.0);
    channel_sums(sums, [=](std::int64_t c, std::int64_t index, int l) {
      const double gradient = static_cast<double>(dy[index]);
      return Pair{gradient, gradient * (static_cast<double>(x[index]) - mean[c + l])};
    });
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
    const float *x = floats(0), *dy = floats(1), *gamma = floats(3);
    const double* stats = doubles(2);
    float *mean = coefficient(0), *of_dy = coefficient(1), *of_x = coefficient(2), *constant = coefficient(3);
    for (std::int64_t c = 0; c < d_.C; ++c) {
      const double istd = stats[d_.C + c], factor = static_cast<double>(gamma[c]) * istd;
      const double slope = factor * istd * sums[d_.C + c] / n;
      mean[c] = static_cast<float>(stats[c]);
      of_dy[c] = static_cast<float>(factor);
      of_x[c] = static_cast<float>(slope);
      constant[c] = static_cast<float>(factor * sums[c] / n - slope * (stats[c] - static_cast<double>(mean[c])));
    }
    float* dx = floats(output);
    if (adds(output))
      elementwise([=](std::int64_t i, std::int64_t c) {
        dx[i] += dy[i] * of_dy[c] - (x[i] - mean[c]) * of_x[c] - constant[c];
      });
    else
      elementwise(
          [=](std::int64_t i, std::int64_t c) { dx[i] = dy[i] * of_dy[c] - (x[i] - mean[c]) * of_x[c] - constant[c]; });
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

  OpKind kind_;
  NormDims d_;
  Planes planes_;
  std::int64_t pixels_;
  std::int64_t padded_;  // channels, rounded up to the lanes of the widest block
  std::int64_t parts_;
  int threads_;
  ScratchPlan plan_;
  std::size_t sums_, partial_, means_;
  std::array<std::size_t, 4> coefficients_;
  std::byte* scratch_ = nullptr;  // of the call that runs
  const OpArgs* args_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> make_norm(Context& context, const OpSpec& spec) { return std::make_unique<Norm>(context, spec); }

}  // namespace echelon::onednn
