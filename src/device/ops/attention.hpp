// SPDX-License-Identifier: Apache-2.0
// Attention with heads of D/heads features each (Vaswani et al. 2017): y = softmax(q k^T / sqrt(D/heads)) v.
//
// kind                   inputs                                      outputs
//   attention_forward    q k v [lengths(N) i32]                      y (+ saved)
//   attention_backward   q k v [lengths(N) i32] dy (+ saved)         dq (adds) dk (adds) dv (adds)
//
// q, y (N, T, D); k, v (N, S, D). Positions s >= length are ignored, and so are positions s > t if `causal` (T = S).
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct AttentionDims {
  std::int64_t N, T, S, D, heads = 1;
  bool causal = false;
  bool lengths = false;  // lengths of k and v are given
  std::int64_t head() const { return D / heads; }
  friend bool operator==(const AttentionDims&, const AttentionDims&) = default;

  void common(OpDescription& op) const {
    op.require(heads >= 1 && D % heads == 0, "{} features cannot be divided into {} heads", {D, heads});
    op.require(!causal || T == S,
               "causal attention needs as many keys as queries, but there are {} queries and {} keys", {T, S});
    op.extents({{"N", N}, {"T", T}, {"S", S}, {"D", D}}).word("heads", heads);
    op.flag(causal, "causal").flag(lengths, "lengths");
    op.in("q", q()).in("k", k()).in("v", k()).lengths(lengths, N);
  }
  void attention_forward(OpDescription& op) const { op.out("y", q()).flops(product() * 2); }
  void attention_backward(OpDescription& op) const {
    op.in("dy", q()).out("dq", q()).adds().out("dk", k()).adds().out("dv", k()).adds().flops(product() * 4);
  }

 private:
  Shape q() const { return {N, T, D}; }
  Shape k() const { return {N, S, D}; }
  double product() const { return 2.0 * static_cast<double>(N * T) * static_cast<double>(S * D); }
};

}  // namespace echelon::inline device
