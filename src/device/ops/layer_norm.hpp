// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over rows of F values each (Ba et al. 2016): y = gamma*xhat + beta, var biased (1/F).
//
// kind                    inputs              outputs
//   layer_norm_forward    x gamma beta        y stats(2, rows) f64: mean, 1/std
//   layer_norm_backward   x dy stats gamma    dx (adds) dgamma (adds) dbeta (adds)
//
// x, y (.., F); gamma, beta (F).
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct LayerNormDims {
  Shape shape;     // shape of x
  std::int64_t F;  // values per row; rows are contiguous
  double epsilon = 1e-5;
  std::int64_t rows() const { return shape.elems() / F; }
  friend bool operator==(const LayerNormDims&, const LayerNormDims&) = default;

  void common(OpDescription& op) const {
    op.require(F >= 1 && shape.elems() % F == 0, "rows of {} values do not divide the shape {}", {F, shape.text()});
    op.word(shape.text()).word("rows of", F);
    if (epsilon != 1e-5) op.word("epsilon", epsilon);
  }
  void layer_norm_forward(OpDescription& op) const {
    op.in("x", shape).in("gamma", {F}).parameter().in("beta", {F}).parameter();
    op.out("y", shape).out("stats", {2, rows()}, DType::f64);
  }
  void layer_norm_backward(OpDescription& op) const {
    op.in("x", shape).in("dy", shape).in("stats", {2, rows()}, DType::f64).in("gamma", {F}).parameter();
    op.out("dx", shape).adds().out("dgamma", {F}).adds().wide().out("dbeta", {F}).adds().wide();
  }
};

}  // namespace echelon::inline device
