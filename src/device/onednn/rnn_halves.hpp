// SPDX-License-Identifier: Apache-2.0
// The weight gradients of a recurrent layer in halves: products over all steps, whose operands are rounded step by step
// while they are in cache.
#pragma once

#include <optional>

#include "device/onednn/product.hpp"
#include "device/op_spec.hpp"

namespace echelon::inline device::onednn {

// dparts: gradients of the gates before their functions, (T, N, P) with P = parts * H, as in rnn_layer.hpp.
class RnnHalfGradients {
 public:
  // `x` (T * N, F) describes its memory.
  RnnHalfGradients(const Context& context, const RnnDims& dims, const Precision& precision, const Factor& x,
                   ScratchPlan& plan);

  // The address of dparts (N, P) of time t, an operand of the products. `scratch` is the start of the plan.
  void* at(std::byte* scratch, std::int64_t t) const { return scratch + dparts_at_ + bytes(t * d_.N * parts_); }
  // The address of dparts of all steps.
  const void* dparts(std::byte* scratch) const { return scratch + dparts_at_; }

  struct Sums {
    const void* x;
    const float* h;  // (T, N, H), before each step
    float *dweight_x, *dweight_h;
    bool add_x, add_h;
  };
  void sum(std::byte* scratch, const Sums& at);

 private:
  std::size_t bytes(std::int64_t elems) const { return static_cast<std::size_t>(elems) * precision_.bytes(); }
  // gru: the number of rows of weight_h of its gate n, whose gradients are the last part of dparts.
  std::int64_t own_rows() const { return d_.cell == Cell::gru ? d_.H : 0; }

  RnnDims d_;
  Precision precision_;
  std::int64_t rows_, parts_;  // T * N, P
  std::size_t dparts_at_;
  std::optional<Product> dweight_x_, dweight_h_, dweight_n_;
};

}  // namespace echelon::inline device::onednn
