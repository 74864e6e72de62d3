// SPDX-License-Identifier: Apache-2.0
// Dense layers in halves with f32 sums (product.hpp); activations are in precision.stored.
#include <algorithm>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/product.hpp"

namespace echelon::inline device::onednn {
namespace {

Product make_product(const Context& context, const OpSpec& spec, const Precision& precision, ScratchPlan& scratch) {
  const auto& d = std::get<DenseDims>(spec.dims);
  const Factor x{.rows = d.N, .columns = d.F, .stride = d.F, .wide = precision.rounds_arguments()};
  const Factor dy{.rows = d.N, .columns = d.K, .stride = d.K, .wide = precision.rounds_arguments()};
  Factor dy_turned = dy;
  dy_turned.rows = d.K, dy_turned.columns = d.N, dy_turned.transposed = true;
  Product::Form form{.weights = true, .stored = precision.stored};
  switch (spec.kind) {
    case OpKind::dense_forward:  // y (N, K) = x (N, F) w(K, F)^T + b
      form.bias = d.bias;
      return {context, precision, x, {d.F, d.K, d.F, true}, dy, form, scratch};
    case OpKind::dense_backward_data:  // dx (N, F) = dy (N, K) w (K, F)
      form.adds = true;
      return {context, precision, dy, {d.K, d.F, d.F}, x, form, scratch};
    default:  // dw (K, F) = dy(N, K)^T x (N, F)
      return {context, precision, dy_turned, x, {d.K, d.F, d.F}, {.adds = true}, scratch};
  }
}

class HalfDense final : public Op {
 public:
  HalfDense(const Context& context, const OpSpec& spec, const Precision& precision)
      : kind_(spec.kind),
        d_(std::get<DenseDims>(spec.dims)),
        precision_(precision),
        threads_(context.threads),
        product_(make_product(context, spec, precision, plan_)) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return product_.implementation(); }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    const auto adds = [&](unsigned output) { return (args.accumulate >> output & 1U) != 0; };
    void* const* at = args.tensors;
    ProductArgs product{.scratch = ScratchPlan::align(args.scratch), .version = args.parameter_version};
    switch (kind_) {
      case OpKind::dense_forward:
        product.a = at[0], product.b = at[1], product.c = at[d_.bias ? 3 : 2];
        if (d_.bias) product.bias = static_cast<const float*>(at[2]);
        return product_.run(product);
      case OpKind::dense_backward_data:
        product.a = at[0], product.b = at[1], product.c = at[2], product.add = adds(2);
        return product_.run(product);
      default:
        product.a = at[1], product.b = at[0], product.c = at[2], product.add = adds(2);
        product_.run(product);
        if (!d_.bias) return;
        const auto sum = [&]<class T>(T) {
          sum_rows(static_cast<const T*>(at[1]), adds(3), static_cast<float*>(at[3]));
        };
        if (!precision_.stores_halves()) return sum(float{});
        with_half(precision_.bf16() ? DType::bf16 : DType::f16, sum);
    }
  }

 private:
  // db (K) = sums of dy (N, K) over N. Each thread takes some columns and sums over all rows, so that the order of the
  // sum does not depend on threads.
  template <class T>
  void sum_rows(const T* dy, bool add, float* db) const {
    constexpr std::int64_t kColumns = 512;
    const auto wide = [](const T* row, float* copy, std::int64_t n) {
      if constexpr (std::is_same_v<T, float>) return row;
      if constexpr (!std::is_same_v<T, float>) return widen(row, copy, n, 1), static_cast<const float*>(copy);
    };
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.K >= kParallelElems)
    for (std::int64_t begin = 0; begin < d_.K; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, d_.K);
      if (!add) std::fill(db + begin, db + end, 0.0f);
      float copy[kColumns];
      for (std::int64_t n = 0; n < d_.N; ++n) {
        const float* row = wide(dy + n * d_.K + begin, copy, end - begin);
#pragma omp simd
        for (std::int64_t k = begin; k < end; ++k) db[k] += row[k - begin];
      }
    }
  }

  OpKind kind_;
  DenseDims d_;
  Precision precision_;
  int threads_;
  ScratchPlan plan_;
  Product product_;
};

}  // namespace

std::unique_ptr<Op> make_half_dense(Context& context, const OpSpec& spec, const Precision& precision) {
  return std::make_unique<HalfDense>(context, spec, precision);
}

}  // namespace echelon::inline device::onednn
