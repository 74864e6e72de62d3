// SPDX-License-Identifier: Apache-2.0
// Losses of real numbers against targets; sums are in double and in order.
#include <cmath>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// Loss and slope of an output for a target, in the terms of device/ops/value_loss.hpp.
struct Squared {
  static double loss(double x, double t) { return (x - t) * (x - t); }
  static float slope(float x, float t) { return 2.0f * (x - t); }
};
struct Logistic {
  static double loss(double x, double t) { return std::fmax(x, 0) - x * t + std::log1p(std::exp(-std::fabs(x))); }
  static float slope(float x, float t) { return 1.0f / (1.0f + std::exp(-x)) - t; }
};
struct Absolute {
  static double loss(double x, double t) { return std::fabs(x - t); }
  static float slope(float x, float t) { return x > t ? 1.0f : x < t ? -1.0f : 0.0f; }
};
struct Hinge {
  static double loss(double x, double t) { return std::fmax(0, 1 - (t > 0.5 ? x : -x)); }
  static float slope(float x, float t) { return t > 0.5f ? (x < 1 ? -1.0f : 0.0f) : (x > -1 ? 1.0f : 0.0f); }
};

class ValueLossOp final : public Op {
 public:
  ValueLossOp(const Context& context, const OpSpec& spec)
      : d_(std::get<ValueLossDims>(spec.dims)),
        forward_(spec.kind == OpKind::loss_values_forward),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* x = static_cast<const float*>(args.tensors[0]);
    const auto* weights = static_cast<const float*>(args.tensors[2]);
    const auto with = [&]<class Loss>(Loss) {
      const auto of = [&](const auto* targets) {
        forward_ ? sum<Loss>(args, x, targets, weights) : pull<Loss>(args, x, targets, weights);
      };
      d_.index_targets ? of(static_cast<const std::int32_t*>(args.tensors[1]))
                       : of(static_cast<const float*>(args.tensors[1]));
    };
    switch (d_.loss) {
      case ValueLoss::squared: return with(Squared());
      case ValueLoss::logistic: return with(Logistic());
      case ValueLoss::absolute: return with(Absolute());
      case ValueLoss::hinge: return with(Hinge());
    }
  }

 private:
  template <class Loss, class Target>
  void sum(const OpArgs& args, const float* x, const Target* targets, const float* weights) const {
    double loss = 0, correct = 0, weight = 0;
    for (std::int64_t e = 0; e < d_.elems; ++e) {
      const double at = x[e], t = targets[e], w = weights[e];
      loss += w * Loss::loss(at, t);
      if (is_of_two(d_.loss)) correct += (at > 0) == (t > 0.5) ? w : 0;
      weight += w;
    }
    auto* sums = static_cast<double*>(args.tensors[3]);
    if ((args.accumulate & 8U) == 0) sums[0] = sums[1] = sums[2] = 0;
    sums[0] += loss;
    sums[1] += correct;
    sums[2] += weight;
  }

  template <class Loss, class Target>
  void pull(const OpArgs& args, const float* x, const Target* targets, const float* weights) const {
    auto* dx = static_cast<float*>(args.tensors[3]);
    const bool add = (args.accumulate & 8U) != 0;
    const auto scale = static_cast<float>(args.scale);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.elems >= kParallelElems)
    for (std::int64_t e = 0; e < d_.elems; ++e) {
      dx[e] = (add ? dx[e] : 0.0f) + scale * weights[e] * Loss::slope(x[e], static_cast<float>(targets[e]));
    }
  }

  ValueLossDims d_;
  bool forward_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_value_loss(Context& context, const OpSpec& spec) {
  return std::make_unique<ValueLossOp>(context, spec);
}

}  // namespace echelon::inline device::onednn
