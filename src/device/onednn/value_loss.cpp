// SPDX-License-Identifier: Apache-2.0
// Losses of real numbers against targets; sums are in double and in order.
#include <cmath>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

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
    const auto with = [&](const auto* targets) {
      forward_ ? sum(args, x, targets, weights) : pull(args, x, targets, weights);
    };
    d_.index_targets ? with(static_cast<const std::int32_t*>(args.tensors[1]))
                     : with(static_cast<const float*>(args.tensors[1]));
  }

 private:
  template <class Target>
  void sum(const OpArgs& args, const float* x, const Target* targets, const float* weights) const {
    double loss = 0, correct = 0, weight = 0;
    for (std::int64_t e = 0; e < d_.elems; ++e) {
      const double at = x[e], t = targets[e], w = weights[e];
      if (d_.loss == ValueLoss::squared) {
        loss += w * (at - t) * (at - t);
      } else {
        loss += w * (std::fmax(at, 0) - at * t + std::log1p(std::exp(-std::fabs(at))));
        correct += (at > 0) == (t > 0.5) ? w : 0;
      }
      weight += w;
    }
    auto* sums = static_cast<double*>(args.tensors[3]);
    if ((args.accumulate & 8U) == 0) sums[0] = sums[1] = sums[2] = 0;
    sums[0] += loss;
    sums[1] += correct;
    sums[2] += weight;
  }

  template <class Target>
  void pull(const OpArgs& args, const float* x, const Target* targets, const float* weights) const {
    auto* dx = static_cast<float*>(args.tensors[3]);
    const bool add = (args.accumulate & 8U) != 0;
    const auto scale = static_cast<float>(args.scale);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.elems >= kParallelElems)
    for (std::int64_t e = 0; e < d_.elems; ++e) {
      const auto t = static_cast<float>(targets[e]);
      const float slope = d_.loss == ValueLoss::squared ? 2.0f * (x[e] - t) : 1.0f / (1.0f + std::exp(-x[e])) - t;
      dx[e] = (add ? dx[e] : 0.0f) + scale * weights[e] * slope;
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
