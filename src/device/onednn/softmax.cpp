// SPDX-License-Identifier: Apache-2.0
// Softmax with cross-entropy by our own loops: rows of classes, or planes of them that hold a label for every place.
// Sums are in double and in an order that does not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/softmax_places.hpp"

namespace echelon::inline device::onednn {
namespace {

class SoftmaxForward final : public Op {
 public:
  SoftmaxForward(const Context& context, const SoftmaxDims& d) : d_(d), threads_(context.threads) {}
  std::size_t scratch_bytes() const override { return static_cast<std::size_t>(d_.N) * sizeof(Row) + alignof(Row); }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]);
    const auto* weights = static_cast<const float*>(args.tensors[2]);
    auto* rows = aligned<Row>(args.scratch);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.K >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n)
      rows[n] = row(static_cast<const float*>(args.tensors[0]) + n * d_.K, labels[n],
                    static_cast<float*>(args.tensors[3]) + n * d_.K);

    LabelSums all;
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const double w = weights[n];
      all.add({w * rows[n].loss, rows[n].correct ? w : 0.0, w});
    }
    put_sums(all, args);
  }

 private:
  struct Row {
    double loss;
    bool correct;
  };

  Row row(const float* logits, std::int32_t label, float* probs) const {
    const float top = largest(logits);
    const double total = exponentials(logits, top, probs);
    const auto factor = static_cast<float>(1.0 / total);
    for (std::int64_t k = 0; k < d_.K; ++k) probs[k] *= factor;
    double target_logit = (1 - d_.smoothing) * static_cast<double>(logits[label]);  // sum of target * logit
    if (d_.smoothing > 0) {
      double sum = 0;
      for (std::int64_t k = 0; k < d_.K; ++k) sum += static_cast<double>(logits[k]);
      target_logit += d_.smoothing / static_cast<double>(d_.K) * sum;
    }
    const bool first = logits[label] == top && std::find(logits, logits + label, top) == logits + label;
    return {std::log(total) - (target_logit - static_cast<double>(top)), first};
  }

  // NaN if the first logit is.
  float largest(const float* logits) const {
    float most[8];
    std::fill(most, most + 8, logits[0]);
    over_lanes(d_.K, [&]<int kLanes>(std::int64_t i) {
      using L = Lanes<kLanes>;
      const auto x = L::load(logits + i), before = L::load(most);
      L::store(most, x > before ? x : before);
    });
    return *std::max_element(most, most + 8);
  }

  // Writes probs = exp(logits - top) and returns their sum, in double from block to block.
  double exponentials(const float* logits, float top, float* probs) const {
    constexpr std::int64_t kBlock = 512;
    double total = 0;
    for (std::int64_t first = 0; first < d_.K; first += kBlock) {
      float sums[8] = {};
      over_lanes(std::min(kBlock, d_.K - first), [&]<int kLanes>(std::int64_t i) {
        using L = Lanes<kLanes>;
        const auto e = VectorMath<Lanes<kLanes>>::exp(L::load(logits + first + i) - top);
        L::store(probs + first + i, e);
        L::store(sums, L::load(sums) + e);
      });
      for (float sum : sums) total += static_cast<double>(sum);
    }
    return total;
  }

  SoftmaxDims d_;
  int threads_;
};

class SoftmaxBackward final : public Op {
 public:
  SoftmaxBackward(const Context& context, const SoftmaxDims& d) : d_(d), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* probs = static_cast<const float*>(args.tensors[0]);
    const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]);
    const auto* weights = static_cast<const float*>(args.tensors[2]);
    auto* dlogits = static_cast<float*>(args.tensors[3]);
    const bool add = (args.accumulate & 8U) != 0;
    const auto rest = static_cast<float>(d_.smoothing / static_cast<double>(d_.K));
    const auto hit = static_cast<float>(1 - d_.smoothing + d_.smoothing / static_cast<double>(d_.K));
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.K >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const auto factor = static_cast<float>(args.scale * static_cast<double>(weights[n]));
      for (std::int64_t k = 0; k < d_.K; ++k) {
        const std::int64_t i = n * d_.K + k;
        dlogits[i] = (add ? dlogits[i] : 0.0f) + factor * (probs[i] - (k == labels[n] ? hit : rest));
      }
    }
  }

 private:
  SoftmaxDims d_;
  int threads_;
};

// Logits (N, K, P).
class PlacesForward final : public Op {
 public:
  PlacesForward(const Context& context, const SoftmaxDims& d) : d_(d), threads_(context.threads) {}
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(blocks()) * sizeof(LabelSums) + alignof(LabelSums);
  }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    auto* const parts = aligned<LabelSums>(args.scratch);
    for_blocks(d_.N, d_.K, d_.P, threads_,
               [&](std::int64_t n, std::int64_t first, std::int64_t count, std::int64_t block) {
                 const std::int64_t at = n * d_.K * d_.P + first, place = n * d_.P + first;
                 parts[block] = of_block(static_cast<const float*>(args.tensors[0]) + at,
                                         static_cast<const std::int32_t*>(args.tensors[1]) + place,
                                         static_cast<const float*>(args.tensors[2]) + place,
                                         static_cast<float*>(args.tensors[3]) + at, count);
               });
    put_sums(total_of(parts, blocks()), args);
  }

 private:
  std::int64_t blocks() const { return d_.N * place_blocks(d_.P); }

  LabelSums of_block(const float* logits, const std::int32_t* labels, const float* weights, float* probs,
                     std::int64_t count) const {
    PlaceSums of;
    softmax_of_places(d_.K, d_.P, logits, probs, count, of);
    LabelSums sums;
    for (std::int64_t i = 0; i < count; ++i) {
      const float own = logits[labels[i] * d_.P + i];
      double target_logit = (1 - d_.smoothing) * static_cast<double>(own);  // sum of target * logit
      if (d_.smoothing > 0)
        target_logit += d_.smoothing / static_cast<double>(d_.K) * static_cast<double>(of.logit_sum[i]);
      const auto w = static_cast<double>(weights[i]);
      sums.loss += w * (std::log(static_cast<double>(of.total[i])) - (target_logit - static_cast<double>(of.top[i])));
      sums.correct += is_chosen(d_.P, logits + i, labels[i], of.top[i]) ? w : 0.0;
      sums.weight += w;
    }
    return sums;
  }

  SoftmaxDims d_;
  int threads_;
};

class PlacesBackward final : public Op {
 public:
  PlacesBackward(const Context& context, const SoftmaxDims& d) : d_(d), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 8U) != 0;
    const auto rest = static_cast<float>(d_.smoothing / static_cast<double>(d_.K));
    const auto hit = static_cast<float>(1 - d_.smoothing);
    for_blocks(d_.N, d_.K, d_.P, threads_, [&](std::int64_t n, std::int64_t first, std::int64_t count, std::int64_t) {
      const auto* labels = static_cast<const std::int32_t*>(args.tensors[1]) + n * d_.P + first;
      const auto* weights = static_cast<const float*>(args.tensors[2]) + n * d_.P + first;
      float factors[kPlaces];
      for (std::int64_t i = 0; i < count; ++i)
        factors[i] = static_cast<float>(args.scale * static_cast<double>(weights[i]));
      for (std::int64_t k = 0; k < d_.K; ++k) {
        const std::int64_t at = (n * d_.K + k) * d_.P + first;
        const auto* probs = static_cast<const float*>(args.tensors[0]) + at;
        auto* dlogits = static_cast<float*>(args.tensors[3]) + at;
        for (std::int64_t i = 0; i < count; ++i) {
          const float value = factors[i] * (probs[i] - (labels[i] == k ? hit + rest : rest));
          dlogits[i] = add ? dlogits[i] + value : value;
        }
      }
    });
  }

 private:
  SoftmaxDims d_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_softmax(Context& context, const OpSpec& spec) {
  const auto& d = std::get<SoftmaxDims>(spec.dims);
  if (d.P > 1) {
    if (spec.kind == OpKind::loss_softmax_forward) return std::make_unique<PlacesForward>(context, d);
    return std::make_unique<PlacesBackward>(context, d);
  }
  if (spec.kind == OpKind::loss_softmax_forward) return std::make_unique<SoftmaxForward>(context, d);
  return std::make_unique<SoftmaxBackward>(context, d);
}

}  // namespace echelon::inline device::onednn
