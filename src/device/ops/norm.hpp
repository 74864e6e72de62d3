// SPDX-License-Identifier: Apache-2.0
// Batch normalisation (Ioffe, Szegedy 2015) over a group of micro-batches, and batch renormalisation (Ioffe 2017).
//
// kind                    inputs                        outputs                                            scalars
//   norm_moments          x                             sums(2, C) f64: sum x, sum x^2
//   norm_normalise        x gamma beta sums             y stats(2, C) f64: mean, istd                      count
//   norm_backward_sums    x dy stats [gamma beta]       sums(2, C) f64: sum dy, sum dy*xhat;
//                                                       dgamma (adds) dbeta (adds)
//   norm_backward_apply   x dy stats gamma [beta] sums  dx (adds)                                          count
//   norm_local_forward    x gamma beta                  y stats       (moments + normalise over this micro-batch)
//   norm_local_backward   x dy stats gamma [beta]       dx (adds) dgamma (adds) dbeta (adds)
//   norm_statistics       stats                         dmean (adds) dvar (adds)                           scale, count
//   norm_inference        x gamma beta mean var         y
//   norm_renorm           sums gamma beta mean var      gamma2 beta2 correction(2, C): r, d                count
//   norm_renorm_backward  dgamma2 dbeta2 correction     dgamma (adds) dbeta (adds)
//
// x, y (N, C, H, W); gamma, beta, mean, var and their gradients (C). The sums cover all members of the group; `count`
// is the group's N*H*W, where 0 means that of this micro-batch.
//
//   xhat = (x - mean) * istd, istd = 1/sqrt(var + epsilon), var biased (1/count); y = gamma*xhat + beta.
//   dx = gamma*istd*(dy - sums[0]/count - xhat*sums[1]/count), with the sums of norm_backward_sums.
//   norm_statistics: dmean += scale*mean, dvar += scale*var*count/max(1,count-1) (unbiased): the step's share of the
//   running statistics, which are parameters of kind `statistic` (device/parameter.hpp).
//
// With `relu`, y = max(0, gamma*xhat + beta), and dy counts only where y > 0; the backward ops recompute that from x,
// so beta is one of their arguments.
//
// Renormalisation uses the running mean and variance m, v in training: y = gamma*(xhat*r + d) + beta with
// r = std/std_v within [1/r_max, r_max] and d = (mean - m)/std_v within [-d_max, d_max], which the gradient takes as
// constants. It is batch norm with gamma2 = gamma*r and beta2 = beta + gamma*d, whose gradients give dgamma = r*dgamma2
// + d*dbeta2 and dbeta = dbeta2.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

struct NormDims {
  std::int64_t N, C, H, W;
  double epsilon = 1e-5;
  bool relu = false;
  double r_max = 1, d_max = 0;  // renormalisation
  friend bool operator==(const NormDims&, const NormDims&) = default;

  void common(OpDescription& op) const {
    op.extents({{"N", N}, {"C", C}, {"H", H}, {"W", W}});
    if (epsilon != 1e-5) op.word("epsilon", epsilon);
    op.flag(relu, "relu");
  }
  void norm_moments(OpDescription& op) const { op.in("x", x()).movable().out("sums", pair(), DType::f64); }
  void norm_normalise(OpDescription& op) const {
    op.in("x", x()).movable().in("gamma", c()).parameter().in("beta", c()).parameter();
    op.in("sums", pair(), DType::f64).out("y", x()).movable().out("stats", pair(), DType::f64);
  }
  void norm_backward_sums(OpDescription& op) const {
    op.in("x", x()).movable().in("dy", x()).movable().in("stats", pair(), DType::f64);
    if (relu) op.in("gamma", c()).parameter().in("beta", c()).parameter();
    op.out("sums", pair(), DType::f64);
    parameter_gradients(op);
  }
  void norm_backward_apply(OpDescription& op) const {
    op.in("x", x()).movable().in("dy", x()).movable().in("stats", pair(), DType::f64).in("gamma", c()).parameter();
    if (relu) op.in("beta", c()).parameter();
    op.in("sums", pair(), DType::f64).out("dx", x()).adds().movable();
  }
  void norm_local_forward(OpDescription& op) const {
    op.in("x", x()).movable().in("gamma", c()).parameter().in("beta", c()).parameter();
    op.out("y", x()).movable().out("stats", pair(), DType::f64);
  }
  void norm_local_backward(OpDescription& op) const {
    op.in("x", x()).movable().in("dy", x()).movable().in("stats", pair(), DType::f64).in("gamma", c()).parameter();
    if (relu) op.in("beta", c()).parameter();
    op.out("dx", x()).adds().movable();
    parameter_gradients(op);
  }
  void norm_statistics(OpDescription& op) const {
    op.in("stats", pair(), DType::f64).out("dmean", c()).adds().wide().out("dvar", c()).adds().wide();
  }
  void norm_inference(OpDescription& op) const {
    op.in("x", x()).movable().in("gamma", c()).parameter().in("beta", c()).parameter();
    op.in("mean", c()).parameter().in("var", c()).parameter().out("y", x()).movable();
  }
  void norm_renorm(OpDescription& op) const {
    op.word("r", r_max).word("d", d_max);
    op.in("sums", pair(), DType::f64).in("gamma", c()).parameter().in("beta", c()).parameter();
    op.in("mean", c()).parameter().in("var", c()).parameter();
    op.out("gamma2", c()).wide().out("beta2", c()).wide().out("correction", pair()).wide();
  }
  void norm_renorm_backward(OpDescription& op) const {
    op.in("dgamma2", c()).wide().in("dbeta2", c()).wide().in("correction", pair()).wide();
    parameter_gradients(op);
  }

 private:
  Shape x() const { return {N, C, H, W}; }
  Shape c() const { return {C}; }
  Shape pair() const { return {2, C}; }
  void parameter_gradients(OpDescription& op) const {
    op.out("dgamma", c()).adds().wide().out("dbeta", c()).adds().wide();
  }
};

}  // namespace echelon::inline device
