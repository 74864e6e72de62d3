// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy with the classes spread over ranks, by our own loops; sums over labels are in double, in order.
#include <algorithm>
#include <cmath>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/vector_math.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kPartials = SoftmaxPartDims::kPartials;
constexpr std::int64_t kBlock = 512;

class SoftmaxPart final : public Op {
 public:
  SoftmaxPart(const Context& context, const SoftmaxPartDims& d) : d_(d), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* logits = static_cast<const float*>(args.tensors[0]);
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]);
    auto* partials = static_cast<float*>(args.tensors[2]);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.K >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n)
      write_partials(logits + n * d_.K, labels[n] - d_.first, partials + n * kPartials);
  }

 private:
  void write_partials(const float* row, std::int64_t label, float* partials) const {
    const float top = *std::max_element(row, row + d_.K);
    double sum = 0, all = 0;
    for (std::int64_t first = 0; first < d_.K; first += kBlock) {
      float sums[8] = {}, alls[8] = {};
      over_lanes(std::min(kBlock, d_.K - first), [&]<int kLanes>(std::int64_t i) {
        using L = Lanes<kLanes>;
        const auto x = L::load(row + first + i);
        L::store(sums, L::load(sums) + VectorMath<Lanes<kLanes>>::exp(x - top));
        L::store(alls, L::load(alls) + x);
      });
      for (int i = 0; i < 8; ++i) sum += static_cast<double>(sums[i]), all += static_cast<double>(alls[i]);
    }
    const bool here = label >= 0 && label < d_.K;
    const double target_logit = (here ? (1 - d_.smoothing) * static_cast<double>(row[label]) : 0) +
                                d_.smoothing / static_cast<double>(d_.classes) * (d_.smoothing > 0 ? all : 0);
    partials[0] = top;
    partials[1] = here && row[label] == top && std::find(row, row + label, top) == row + label ? 1.0f : 0.0f;
    partials[2] = static_cast<float>(sum);
    partials[3] = static_cast<float>(target_logit);
  }

  SoftmaxPartDims d_;
  int threads_;
};

class SoftmaxJoin final : public Op {
 public:
  explicit SoftmaxJoin(const SoftmaxPartDims& d) : d_(d) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* partials = static_cast<const float*>(args.tensors[0]);
    const auto* weights = static_cast<const float*>(args.tensors[1]);
    auto* norms = static_cast<float*>(args.tensors[2]);
    auto* sums = static_cast<double*>(args.tensors[3]);
    if ((args.accumulate & 8U) == 0) std::fill_n(sums, 3, 0.0);
    for (std::int64_t n = 0; n < d_.N; ++n, partials += d_.parts * kPartials) {
      const float* first = partials;  // partials of the part with the largest logit
      for (std::int64_t p = 1; p < d_.parts; ++p)
        if (partials[p * kPartials] > *first) first = partials + p * kPartials;
      double sum = 0, target_logit = 0;
      for (const float* part = partials; part < partials + d_.parts * kPartials; part += kPartials) {
        sum += static_cast<double>(part[2]) * std::exp(static_cast<double>(part[0]) - static_cast<double>(*first));
        target_logit += static_cast<double>(part[3]);
      }
      const double norm = static_cast<double>(*first) + std::log(sum), weight = weights[n];
      norms[n] = static_cast<float>(norm);
      sums[0] += weight * (norm - target_logit);
      sums[1] += weight * static_cast<double>(first[1]);
      sums[2] += weight;
    }
  }

 private:
  SoftmaxPartDims d_;
};

class SoftmaxPartBackward final : public Op {
 public:
  SoftmaxPartBackward(const Context& context, const SoftmaxPartDims& d) : d_(d), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* logits = static_cast<const float*>(args.tensors[0]);
    const auto* norms = static_cast<const float*>(args.tensors[1]);
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[2]);
    const auto* weights = static_cast<const float*>(args.tensors[3]);
    auto* dlogits = static_cast<float*>(args.tensors[4]);
    const bool add = (args.accumulate & 16U) != 0;
    const auto rest = static_cast<float>(d_.smoothing / static_cast<double>(d_.classes));
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.K >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const auto factor = static_cast<float>(args.scale * static_cast<double>(weights[n]));
      const float *row = logits + n * d_.K, norm = norms[n];
      float* to = dlogits + n * d_.K;
      const std::int64_t label = labels[n] - d_.first;
      const bool here = label >= 0 && label < d_.K;
      const float hit = static_cast<float>(1 - d_.smoothing) * factor, kept = here && add ? to[label] : 0.0f;
      const float at_label = here ? factor * (std::exp(row[label] - norm) - rest) - hit : 0.0f;
      over_lanes(d_.K, [&]<int kLanes>(std::int64_t k) {
        using L = Lanes<kLanes>;
        const auto value = (VectorMath<Lanes<kLanes>>::exp(L::load(row + k) - norm) - rest) * factor;
        L::store(to + k, add ? L::load(to + k) + value : value);
      });
      if (here) to[label] = kept + at_label;
    }
  }

 private:
  SoftmaxPartDims d_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_softmax_part(Context& context, const OpSpec& spec) {
  const auto& d = std::get<SoftmaxPartDims>(spec.dims);
  if (spec.kind == OpKind::loss_softmax_part) return std::make_unique<SoftmaxPart>(context, d);
  if (spec.kind == OpKind::loss_softmax_join) return std::make_unique<SoftmaxJoin>(d);
  return std::make_unique<SoftmaxPartBackward>(context, d);
}

}  // namespace echelon::inline device::onednn
