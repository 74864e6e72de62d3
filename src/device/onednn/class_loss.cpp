// SPDX-License-Identifier: Apache-2.0
// Focal and Dice loss by our own loops. Sums are in double and in an order that does not depend on the number of
// threads.
#include <algorithm>
#include <cmath>

#include "device/onednn/ops.hpp"
#include "device/onednn/softmax_places.hpp"

namespace echelon::inline device::onednn {
namespace {

// The sums over the places of every sample (device/ops/class_loss.hpp), each in the order of places.
void measure_overlaps(const ClassLossDims& d, int threads, const float* probs, const std::int32_t* labels,
                      const float* weights, double* overlaps) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && d.N * d.K * d.P >= kParallelElems)
  for (std::int64_t at = 0; at < d.N * (d.K + 1); ++at) {
    const std::int64_t n = at / (d.K + 1), k = at % (d.K + 1), first = n * d.P;
    double* const to = overlaps + n * (2 * d.K + 1) + 2 * k;
    double overlap = 0, size = 0;
    if (k == d.K) {
      for (std::int64_t i = 0; i < d.P; ++i) size += static_cast<double>(weights[first + i]);
      *to = size;
      continue;
    }
    for (std::int64_t i = 0; i < d.P; ++i) {
      const double p = probs[(n * d.K + k) * d.P + i], w = weights[first + i];
      const bool own = labels[first + i] == k;
      overlap += own ? 2 * w * p : 0.0;
      size += w * (own ? p + 1 : p);
    }
    to[0] = overlap, to[1] = size;
  }
}

class ClassLossForward final : public Op {
 public:
  ClassLossForward(const Context& context, const ClassLossDims& d) : d_(d), threads_(context.threads) {}
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(blocks()) * sizeof(LabelSums) + alignof(LabelSums);
  }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* logits = static_cast<const float*>(args.tensors[0]);
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]);
    const auto* weights = static_cast<const float*>(args.tensors[2]);
    auto* probs = static_cast<float*>(args.tensors[3]);
    auto* const parts = aligned<LabelSums>(args.scratch);
    for_blocks(d_.N, d_.K, d_.P, threads_,
               [&](std::int64_t n, std::int64_t first, std::int64_t count, std::int64_t block) {
                 const std::int64_t at = n * d_.K * d_.P + first, place = n * d_.P + first;
                 parts[block] = of_block(logits + at, labels + place, weights + place, probs + at, count);
               });
    put_sums(total_of(parts, blocks()), args);
    if (d_.loss == ClassLoss::dice)
      measure_overlaps(d_, threads_, probs, labels, weights, static_cast<double*>(args.tensors[5]));
  }

 private:
  std::int64_t blocks() const { return d_.N * place_blocks(d_.P); }

  LabelSums of_block(const float* logits, const std::int32_t* labels, const float* weights, float* probs,
                     std::int64_t count) const {
    PlaceSums of;
    softmax_of_places(d_.K, d_.P, logits, probs, count, of);
    LabelSums sums;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto w = static_cast<double>(weights[i]);
      const double below = static_cast<double>(logits[labels[i] * d_.P + i]) - static_cast<double>(of.top[i]);
      const double cross = std::log(static_cast<double>(of.total[i])) - below;
      if (d_.loss == ClassLoss::focal) sums.loss += w * std::pow(-std::expm1(-cross), d_.gamma) * cross;
      sums.correct += is_chosen(d_.P, logits + i, labels[i], of.top[i]) ? w : 0.0;
      sums.weight += w;
    }
    return sums;
  }

  ClassLossDims d_;
  int threads_;
};

class ClassLossJoin final : public Op {
 public:
  explicit ClassLossJoin(const ClassLossDims& d) : d_(d) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto *own = static_cast<const double*>(args.tensors[0]), *all = static_cast<const double*>(args.tensors[1]);
    auto* const sums = static_cast<double*>(args.tensors[2]);
    if ((args.accumulate & 4U) == 0) sums[0] = sums[1] = sums[2] = 0;
    for (std::int64_t n = 0; n < d_.N; ++n, own += 2 * d_.K + 1, all += 2 * d_.K + 1) {
      double sum = 0;
      for (std::int64_t k = 0; k < d_.K; ++k) sum += (all[2 * k] + 1) / (all[2 * k + 1] + 1);
      sums[0] += own[2 * d_.K] * (1 - sum / static_cast<double>(d_.K));
    }
  }

 private:
  ClassLossDims d_;
};

class ClassLossBackward final : public Op {
 public:
  ClassLossBackward(const Context& context, const ClassLossDims& d) : d_(d), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]);
    const auto* weights = static_cast<const float*>(args.tensors[2]);
    const bool is_dice = d_.loss == ClassLoss::dice;
    const auto* overlaps = static_cast<const double*>(args.tensors[3]);
    const int gradient = is_dice ? 4 : 3;
    for_blocks(d_.N, d_.K, d_.P, threads_, [&](std::int64_t n, std::int64_t first, std::int64_t count, std::int64_t) {
      const Block block{.probs = static_cast<const float*>(args.tensors[0]) + n * d_.K * d_.P + first,
                        .labels = labels + n * d_.P + first,
                        .weights = weights + n * d_.P + first,
                        .dlogits = static_cast<float*>(args.tensors[gradient]) + n * d_.K * d_.P + first,
                        .count = count,
                        .add = (args.accumulate >> gradient & 1U) != 0};
      if (is_dice)
        dice(block, overlaps + n * (2 * d_.K + 1), args.scale);
      else
        focal(block, args.scale);
    });
  }

 private:
  struct Block {
    const float* probs;
    const std::int32_t* labels;
    const float* weights;
    float* dlogits;
    std::int64_t count;
    bool add;
    void put(std::int64_t at, float value) const { dlogits[at] = add ? dlogits[at] + value : value; }
  };

  void focal(const Block& b, double scale) const {
    float factors[kPlaces];
    for (std::int64_t i = 0; i < b.count; ++i) {
      const auto p = static_cast<double>(b.probs[b.labels[i] * d_.P + i]);
      const double rest = std::max(0.0, 1 - p);
      double factor = std::pow(rest, d_.gamma);
      if (d_.gamma > 0 && rest > 0 && p > 0) factor -= d_.gamma * p * std::pow(rest, d_.gamma - 1) * std::log(p);
      factors[i] = static_cast<float>(scale * static_cast<double>(b.weights[i]) * factor);
    }
    for (std::int64_t k = 0; k < d_.K; ++k)
      for (std::int64_t i = 0; i < b.count; ++i)
        b.put(k * d_.P + i, factors[i] * (b.probs[k * d_.P + i] - (b.labels[i] == k ? 1.0f : 0.0f)));
  }

  // The slope of class k is that of a place without this label, and less by `own` where it is the label.
  void dice(const Block& b, const double* overlaps, double scale) const {
    const double classes = static_cast<double>(d_.K), weight = overlaps[2 * d_.K];
    const auto size = [&](std::int64_t k) { return overlaps[2 * k + 1] + 1; };
    const auto slope = [&](std::int64_t k) {
      return static_cast<float>((overlaps[2 * k] + 1) / (size(k) * size(k)) / classes);
    };
    const auto own = [&](std::int64_t k) { return static_cast<float>(2 / (size(k) * classes)); };
    float means[kPlaces] = {};
    for (std::int64_t k = 0; k < d_.K; ++k) {
      const float each = slope(k), less = own(k);
      for (std::int64_t i = 0; i < b.count; ++i)
        means[i] += b.probs[k * d_.P + i] * (b.labels[i] == k ? each - less : each);
    }
    for (std::int64_t k = 0; k < d_.K; ++k) {
      const float each = slope(k), less = own(k);
      for (std::int64_t i = 0; i < b.count; ++i) {
        const auto factor = static_cast<float>(scale * weight * static_cast<double>(b.weights[i]));
        const float apart = (b.labels[i] == k ? each - less : each) - means[i];
        b.put(k * d_.P + i, factor * b.probs[k * d_.P + i] * apart);
      }
    }
  }

  ClassLossDims d_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_class_loss(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ClassLossDims>(spec.dims);
  if (spec.kind == OpKind::loss_class_forward) return std::make_unique<ClassLossForward>(context, d);
  if (spec.kind == OpKind::loss_class_join) return std::make_unique<ClassLossJoin>(d);
  return std::make_unique<ClassLossBackward>(context, d);
}

}  // namespace echelon::inline device::onednn
