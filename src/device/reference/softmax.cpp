// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over K classes: sums of weighted losses and hits, and the gradient of the logits.
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// The logits of one label: K values, P apart.
template <class T>
struct Row {
  const T* first;
  std::int64_t K, P;
  double operator[](std::int64_t k) const { return static_cast<double>(first[k * P]); }
  std::int64_t largest() const {  // the first of equal ones
    std::int64_t most = 0;
    for (std::int64_t k = 1; k < K; ++k)
      if ((*this)[k] > (*this)[most]) most = k;
    return most;
  }
};

template <class T>
void forward(const SoftmaxDims& d, const OpArgs& args) {
  const T *logits = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> probs(args, 3);
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t at = 0; at < d.N * d.P; ++at) {
    const std::int64_t first = at / d.P * d.K * d.P + at % d.P;
    const Row<T> row{logits + first, d.K, d.P};
    const std::int64_t most = row.largest();
    double sum = 0;
    for (std::int64_t k = 0; k < d.K; ++k) sum += std::exp(row[k] - row[most]);
    for (std::int64_t k = 0; k < d.K; ++k) probs.put(first + k * d.P, std::exp(row[k] - row[most]) / sum);
    const auto w = static_cast<double>(weights[at]);
    double target_logit = (1 - d.smoothing) * row[labels[at]];  // sum of target * logit
    if (d.smoothing > 0)
      for (std::int64_t k = 0; k < d.K; ++k) target_logit += d.smoothing / static_cast<double>(d.K) * row[k];
    loss += w * (std::log(sum) + row[most] - target_logit);
    correct += most == labels[at] ? w : 0;
    weight += w;
  }
  const Output<double> sums(args, 4);
  sums.put(0, loss);
  sums.put(1, correct);
  sums.put(2, weight);
}

template <class T>
void backward(const SoftmaxDims& d, const OpArgs& args) {
  const T *probs = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> dlogits(args, 3);
  for (std::int64_t at = 0; at < d.N * d.P; ++at)
    for (std::int64_t k = 0; k < d.K; ++k) {
      const std::int64_t i = (at / d.P * d.K + k) * d.P + at % d.P;
      const double target = (k == labels[at] ? 1 - d.smoothing : 0) + d.smoothing / static_cast<double>(d.K);
      const double apart = static_cast<double>(probs[i]) - target;
      dlogits.put(i, args.scale * static_cast<double>(weights[at]) * apart);
    }
}

}  // namespace

std::unique_ptr<Op> make_softmax(const OpSpec& spec) {
  const auto d = std::get<SoftmaxDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::loss_softmax_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::loss_softmax_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
