// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy with the classes spread over ranks: the partials of a rank's classes, their combination over
// all parts, and the gradient of its logits.
#include <algorithm>
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void write_partials(const SoftmaxPartDims& d, const OpArgs& args) {
  const T* logits = in<T>(args, 0);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> partials(args, 2);
  for (std::int64_t n = 0; n < d.N; ++n) {
    const T* row = logits + n * d.K;
    const T* most = std::max_element(row, row + d.K);  // the first of equal ones
    const std::int64_t label = labels[n] - d.first;
    const bool here = label >= 0 && label < d.K;
    double sum = 0, target_logit = here ? (1 - d.smoothing) * static_cast<double>(row[label]) : 0;
    for (std::int64_t k = 0; k < d.K; ++k) sum += std::exp(static_cast<double>(row[k]) - static_cast<double>(*most));
    if (d.smoothing > 0)
      for (std::int64_t k = 0; k < d.K; ++k)
        target_logit += d.smoothing / static_cast<double>(d.classes) * static_cast<double>(row[k]);
    partials.put(n * SoftmaxPartDims::kPartials, static_cast<double>(*most));
    partials.put(n * SoftmaxPartDims::kPartials + 1, most - row == label ? 1 : 0);
    partials.put(n * SoftmaxPartDims::kPartials + 2, sum);
    partials.put(n * SoftmaxPartDims::kPartials + 3, target_logit);
  }
}

template <class T>
void join(const SoftmaxPartDims& d, const OpArgs& args) {
  const T *partials = in<T>(args, 0), *weights = in<T>(args, 1);
  const Output<T> norms(args, 2);
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t n = 0; n < d.N; ++n) {
    const auto at = [&](std::int64_t part, int i) {
      return static_cast<double>(partials[(n * d.parts + part) * SoftmaxPartDims::kPartials + i]);
    };
    std::int64_t first = 0;  // part with the largest logit
    for (std::int64_t p = 1; p < d.parts; ++p)
      if (at(p, 0) > at(first, 0)) first = p;
    double sum = 0, target_logit = 0;
    for (std::int64_t p = 0; p < d.parts; ++p) {
      sum += at(p, 2) * std::exp(at(p, 0) - at(first, 0));
      target_logit += at(p, 3);
    }
    const double norm = at(first, 0) + std::log(sum);
    const auto w = static_cast<double>(weights[n]);
    norms.put(n, norm);
    loss += w * (norm - target_logit);
    correct += w * at(first, 1);
    weight += w;
  }
  const Output<double> sums(args, 3);
  sums.put(0, loss);
  sums.put(1, correct);
  sums.put(2, weight);
}

template <class T>
void backward(const SoftmaxPartDims& d, const OpArgs& args) {
  const T *logits = in<T>(args, 0), *norms = in<T>(args, 1), *weights = in<T>(args, 3);
  const auto* labels = in<std::int32_t>(args, 2);
  const Output<T> dlogits(args, 4);
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t k = 0; k < d.K; ++k) {
      const double target =
          (k == labels[n] - d.first ? 1 - d.smoothing : 0) + d.smoothing / static_cast<double>(d.classes);
      const double prob = std::exp(static_cast<double>(logits[n * d.K + k]) - static_cast<double>(norms[n]));
      dlogits.put(n * d.K + k, args.scale * static_cast<double>(weights[n]) * (prob - target));
    }
}

}  // namespace

std::unique_ptr<Op> make_softmax_part(const OpSpec& spec) {
  const auto d = std::get<SoftmaxPartDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::loss_softmax_part) return loop_op([d](const OpArgs& a) { write_partials<T>(d, a); });
    if (spec.kind == OpKind::loss_softmax_join) return loop_op([d](const OpArgs& a) { join<T>(d, a); });
    if (spec.kind != OpKind::loss_softmax_part_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
