// SPDX-License-Identifier: Apache-2.0
// Focal and Dice loss, device/ops/class_loss.hpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Index of a class of a place; `place` counts over samples.
std::int64_t index_of(const ClassLossDims& d, std::int64_t place, std::int64_t k) {
  return (place / d.P * d.K + k) * d.P + place % d.P;
}

// The sums over all places of a sample, device/ops/class_loss.hpp.
struct Overlaps {
  std::int64_t K;
  const double* of;  // (2K + 1)
  double overlap(std::int64_t k) const { return of[2 * k] + 1; }
  double size(std::int64_t k) const { return of[2 * k + 1] + 1; }
  double weight() const { return of[2 * K]; }
};

template <class T>
void class_loss_forward(const ClassLossDims& d, const OpArgs& args) {
  const T *logits = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> probs(args, 3);
  std::vector<double> exact(static_cast<std::size_t>(d.N * d.K * d.P));
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t place = 0; place < d.N * d.P; ++place) {
    const auto logit = [&](std::int64_t k) { return static_cast<double>(logits[index_of(d, place, k)]); };
    std::int64_t most = 0;
    for (std::int64_t k = 1; k < d.K; ++k)
      if (logit(k) > logit(most)) most = k;
    double sum = 0;
    for (std::int64_t k = 0; k < d.K; ++k) sum += std::exp(logit(k) - logit(most));
    for (std::int64_t k = 0; k < d.K; ++k) {
      const double p = std::exp(logit(k) - logit(most)) / sum;
      exact[static_cast<std::size_t>(index_of(d, place, k))] = p;
      probs.put(index_of(d, place, k), p);
    }
    const auto w = static_cast<double>(weights[place]);
    if (d.loss == ClassLoss::focal) {
      const double p = exact[static_cast<std::size_t>(index_of(d, place, labels[place]))];
      loss += w * std::pow(1 - p, d.gamma) * (std::log(sum) + logit(most) - logit(labels[place]));
    }
    correct += most == labels[place] ? w : 0;
    weight += w;
  }
  const Output<double> sums(args, 4);
  sums.put(0, loss);
  sums.put(1, correct);
  sums.put(2, weight);
  if (d.loss == ClassLoss::focal) return;
  auto* const overlaps = static_cast<double*>(args.tensors[5]);
  std::fill_n(overlaps, d.N * (2 * d.K + 1), 0.0);
  for (std::int64_t place = 0; place < d.N * d.P; ++place) {
    double* const of = overlaps + place / d.P * (2 * d.K + 1);
    const auto w = static_cast<double>(weights[place]);
    for (std::int64_t k = 0; k < d.K; ++k) {
      const double p = exact[static_cast<std::size_t>(index_of(d, place, k))], own = labels[place] == k ? 1 : 0;
      of[2 * k] += 2 * w * p * own;
      of[2 * k + 1] += w * (p + own);
    }
    of[2 * d.K] += w;
  }
}

void join(const ClassLossDims& d, const OpArgs& args) {
  double loss = 0;
  for (std::int64_t n = 0; n < d.N; ++n) {
    const std::int64_t at = n * (2 * d.K + 1);
    const Overlaps own{d.K, in<double>(args, 0) + at}, all{d.K, in<double>(args, 1) + at};
    double sum = 0;
    for (std::int64_t k = 0; k < d.K; ++k) sum += all.overlap(k) / all.size(k);
    loss += own.weight() * (1 - sum / static_cast<double>(d.K));
  }
  const Output<double> sums(args, 2);
  sums.put(0, loss);
  sums.put(1, 0);
  sums.put(2, 0);
}

// d loss / d logit_k = p_k (e_k - sum_j e_j p_j) for e = d loss / d p.
template <class T>
void dice_backward(const ClassLossDims& d, const OpArgs& args) {
  const T *probs = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> dlogits(args, 4);
  const auto probability = [&](std::int64_t i) { return static_cast<double>(probs[i]); };
  for (std::int64_t n = 0; n < d.N; ++n) {
    const Overlaps all{d.K, in<double>(args, 3) + n * (2 * d.K + 1)};
    for (std::int64_t place = n * d.P; place < (n + 1) * d.P; ++place) {
      std::vector<double> slopes;
      double mean = 0;
      for (std::int64_t k = 0; k < d.K; ++k) {
        const double overlap = all.overlap(k), size = all.size(k), own = labels[place] == k ? 1 : 0;
        slopes.push_back(-(2 * own / size - overlap / (size * size)) / static_cast<double>(d.K));
        mean += slopes.back() * probability(index_of(d, place, k));
      }
      const double factor = args.scale * all.weight() * static_cast<double>(weights[place]);
      for (std::int64_t k = 0; k < d.K; ++k)
        dlogits.put(index_of(d, place, k),
                    factor * probability(index_of(d, place, k)) * (slopes[static_cast<std::size_t>(k)] - mean));
    }
  }
}

// d loss / d logit_k = (p_k - [k = t]) ((1 - p_t)^gamma - gamma p_t (1 - p_t)^(gamma - 1) log p_t).
template <class T>
void focal_backward(const ClassLossDims& d, const OpArgs& args) {
  const T *probs = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> dlogits(args, 3);
  for (std::int64_t place = 0; place < d.N * d.P; ++place) {
    const auto p = static_cast<double>(probs[index_of(d, place, labels[place])]);
    const double rest = std::max(0.0, 1 - p);
    double factor = std::pow(rest, d.gamma);
    if (d.gamma > 0 && rest > 0 && p > 0) factor -= d.gamma * p * std::pow(rest, d.gamma - 1) * std::log(p);
    for (std::int64_t k = 0; k < d.K; ++k) {
      const std::int64_t i = index_of(d, place, k);
      const double apart = static_cast<double>(probs[i]) - (k == labels[place] ? 1 : 0);
      dlogits.put(i, args.scale * static_cast<double>(weights[place]) * factor * apart);
    }
  }
}

}  // namespace

std::unique_ptr<Op> make_class_loss(const OpSpec& spec) {
  const auto d = std::get<ClassLossDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::loss_class_forward) return loop_op([d](const OpArgs& a) { class_loss_forward<T>(d, a); });
    if (spec.kind == OpKind::loss_class_join) return loop_op([d](const OpArgs& a) { join(d, a); });
    if (spec.kind != OpKind::loss_class_backward) not_of_family(spec);
    if (d.loss == ClassLoss::dice) return loop_op([d](const OpArgs& a) { dice_backward<T>(d, a); });
    return loop_op([d](const OpArgs& a) { focal_backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
