// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/rnn_halves.hpp"

namespace echelon::inline device::onednn {

// The left factors are transposes of matrices in memory, with which the library's products take a fifth longer. Storing
// dparts transposed in addition would cost as much.
RnnHalfGradients::RnnHalfGradients(const Context& context, const RnnDims& dims, const Precision& precision,
                                   const Factor& x, ScratchPlan& plan)
    : d_(dims),
      precision_(precision),
      rows_(d_.T * d_.N),
      parts_(parts_of(d_.cell) * d_.H),
      dparts_at_(plan.take(bytes(rows_ * parts_))) {
  const auto product = [&](std::int64_t outputs, const Factor& right, const Product* same_left = nullptr) {
    return Product(context, precision, {outputs, rows_, parts_, true}, right, {outputs, right.columns, right.columns},
                   {.adds = true, .same_left = same_left}, plan);
  };
  const std::int64_t gates = d_.G() * d_.H;
  const Factor h{.rows = rows_, .columns = d_.H, .stride = d_.H, .wide = true};
  dweight_x_.emplace(product(gates, x));
  dweight_h_.emplace(product(gates - own_rows(), h, own_rows() > 0 ? nullptr : &*dweight_x_));
  if (own_rows() > 0) dweight_n_.emplace(product(own_rows(), h));
}

void RnnHalfGradients::sum(std::byte* scratch, const Sums& at) {
  const std::byte* dparts = scratch + dparts_at_;
  dweight_x_->run({.a = dparts, .b = at.x, .c = at.dweight_x, .scratch = scratch, .add = at.add_x});
  dweight_h_->run({.a = dparts, .b = at.h, .c = at.dweight_h, .scratch = scratch, .add = at.add_h});
  if (!dweight_n_) return;
  dweight_n_->run({.a = dparts + bytes(parts_ - own_rows()),
                   .b = at.h,
                   .c = at.dweight_h + (d_.G() * d_.H - own_rows()) * d_.H,
                   .scratch = scratch,
                   .add = at.add_h});
}

}  // namespace echelon::inline device::onednn
