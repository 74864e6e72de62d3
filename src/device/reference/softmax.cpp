// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over K classes: sums of weighted losses and hits, and the gradient of the logits.
#include <algorithm>
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void forward(const SoftmaxDims& d, const OpArgs& args) {
  const T *logits = in<T>(args, 0), *weights = in<T>(args, 2);
  const auto* labels = in<std::int32_t>(args, 1);
  const Output<T> probs(args, 3);
  double loss = 0, correct = 0, weight = 0;
  for (std::int64_t n = 0; n < d.N; ++n) {
    const T* row = logits + n * d.K;
    const T* most = std::max_element(row, row + d.K);  // the first of equal ones
    double sum = 0;
    for (std::int64_t k = 0; k < d.K; ++k) sum += std::exp(static_cast<double>(row[k]) - static_cast<double>(*most));
    for (std::int64_t k = 0; k < d.K; ++k)
      probs.put(n * d.K + k, std::exp(static_cast<double>(row[k]) - static_cast<double>(*most)) / sum);
    const auto w = static_cast<double>(weights[n]);
    double target_logit = (1 - d.smoothing) * static_cast<double>(row[labels[n]]);  // sum of target * logit
    if (d.smoothing > 0)
      for (std::int64_t k = 0; k < d.K; ++k)
        target_logit += d.smoothing / static_cast<double>(d.K) * static_cast<double>(row[k]);
    loss += w * (std::log(sum) + static_cast<double>(*most) - target_logit);
    correct += most - row == labels[n] ? w : 0;
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
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t k = 0; k < d.K; ++k) {
      const double target = (k == labels[n] ? 1 - d.smoothing : 0) + d.smoothing / static_cast<double>(d.K);
      const double apart = static_cast<double>(probs[n * d.K + k]) - target;
      dlogits.put(n * d.K + k, args.scale * static_cast<double>(weights[n]) * apart);
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
