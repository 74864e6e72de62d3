// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention with several heads; the probabilities are kept for the backward pass.
//
//   dv = p^T dy;  dp = dy v^T;  da = p * (dp - sum_s p dp);  dq = da k / sqrt(head);  dk = da^T q / sqrt(head)
#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// One head of one sample: where its rows begin, and the number of positions of k and v that row t attends to.
struct Head {
  const AttentionDims& d;
  std::int64_t n, h, length;
  std::int64_t q(std::int64_t t) const { return (n * d.T + t) * d.D + h * d.head(); }
  std::int64_t k(std::int64_t s) const { return (n * d.S + s) * d.D + h * d.head(); }
  std::int64_t p(std::int64_t t) const { return ((n * d.heads + h) * d.T + t) * d.S; }
  std::int64_t seen(std::int64_t t) const { return d.causal ? std::min(length, t + 1) : length; }
};

template <class Body>
void each_head(const AttentionDims& d, const OpArgs& args, const Body& body) {
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t h = 0; h < d.heads; ++h) body(Head{d, n, h, d.lengths ? in<std::int32_t>(args, 3)[n] : d.S});
}

template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class T>
void forward(const AttentionDims& d, const OpArgs& args) {
  const T *q = in<T>(args, 0), *k = in<T>(args, 1), *v = in<T>(args, 2);
  const Output<T> y(args, d.lengths ? 4 : 3);
  auto* saved = static_cast<double*>(args.saved);
  const double scale = 1 / std::sqrt(static_cast<double>(d.head()));
  each_head(d, args, [&](const Head& head) {
    for (std::int64_t t = 0; t < d.T; ++t) {
      double* p = saved + head.p(t);
      const std::int64_t seen = head.seen(t);
      for (std::int64_t s = 0; s < seen; ++s) p[s] = scale * dot(q + head.q(t), k + head.k(s), d.head());
      const double most = *std::max_element(p, p + seen);
      double sum = 0;
      for (std::int64_t s = 0; s < seen; ++s) sum += p[s] = std::exp(p[s] - most);
      for (std::int64_t s = 0; s < d.S; ++s) p[s] = s < seen ? p[s] / sum : 0;
      for (std::int64_t i = 0; i < d.head(); ++i) {
        double out = 0;
        for (std::int64_t s = 0; s < seen; ++s) out += p[s] * static_cast<double>(v[head.k(s) + i]);
        y.put(head.q(t) + i, out);
      }
    }
  });
}

template <class T>
void backward(const AttentionDims& d, const OpArgs& args) {
  const int first = d.lengths ? 4 : 3;
  const T *q = in<T>(args, 0), *k = in<T>(args, 1), *v = in<T>(args, 2), *dy = in<T>(args, first);
  const Output<T> dq(args, first + 1), dk(args, first + 2), dv(args, first + 3);
  const auto* saved = static_cast<const double*>(args.saved);
  const double scale = 1 / std::sqrt(static_cast<double>(d.head()));
  std::vector<double> da(static_cast<std::size_t>(d.T * d.S));
  each_head(d, args, [&](const Head& head) {
    for (std::int64_t t = 0; t < d.T; ++t) {
      const double* p = saved + head.p(t);
      double* row = da.data() + t * d.S;
      double mean = 0;
      for (std::int64_t s = 0; s < d.S; ++s) {
        row[s] = dot(dy + head.q(t), v + head.k(s), d.head());
        mean += p[s] * row[s];
      }
      for (std::int64_t s = 0; s < d.S; ++s) row[s] = scale * p[s] * (row[s] - mean);
      for (std::int64_t i = 0; i < d.head(); ++i) {
        double sum = 0;
        for (std::int64_t s = 0; s < d.S; ++s) sum += row[s] * static_cast<double>(k[head.k(s) + i]);
        dq.put(head.q(t) + i, sum);
      }
    }
    for (std::int64_t s = 0; s < d.S; ++s)
      for (std::int64_t i = 0; i < d.head(); ++i) {
        double to_k = 0, to_v = 0;
        for (std::int64_t t = 0; t < d.T; ++t) {
          to_k += da[static_cast<std::size_t>(t * d.S + s)] * static_cast<double>(q[head.q(t) + i]);
          to_v += saved[head.p(t) + s] * static_cast<double>(dy[head.q(t) + i]);
        }
        dk.put(head.k(s) + i, to_k);
        dv.put(head.k(s) + i, to_v);
      }
  });
}

}  // namespace

std::unique_ptr<Op> make_attention(const OpSpec& spec) {
  const auto d = std::get<AttentionDims>(spec.dims);
  const auto saved = static_cast<std::size_t>(d.N * d.heads * d.T * d.S) * sizeof(double);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::attention_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); }, saved);
    if (spec.kind != OpKind::attention_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); }, saved);
  });
}

}  // namespace echelon::inline device::reference
