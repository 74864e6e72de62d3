// Dense layers in halves, by the library's matrix product with f32 sums; activations are in precision.type.
#include <algorithm>
#include <bit>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/product.hpp"

namespace echelon::inline device::onednn {
namespace {

Product make_product(const Context& context, const OpSpec& spec, const Precision& precision) {
  const auto& d = std::get<DenseDims>(spec.dims);
  switch (spec.kind) {
    case OpKind::dense_forward:  // y (N, K) = x (N, F) w(K, F)^T + b
      return {context,         precision,
              {d.N, d.F, d.F}, {d.F, d.K, d.F, true},
              {d.N, d.K, d.K}, {.weights = true, .bias = d.bias, .stored = precision.type}};
    case OpKind::dense_backward_data:  // dx (N, F) = dy (N, K) w (K, F)
      return {context,         precision,       {d.N, d.K, d.K},
              {d.K, d.F, d.F}, {d.N, d.F, d.F}, {.weights = true, .adds = true, .stored = precision.type}};
    default:  // dw (K, F) = dy(N, K)^T x (N, F)
      return {context, precision, {d.K, d.N, d.K, true}, {d.N, d.F, d.F}, {d.K, d.F, d.F}, {.adds = true}};
  }
}

class HalfDense final : public Op {
 public:
  HalfDense(const Context& context, const OpSpec& spec, const Precision& precision)
      : kind_(spec.kind),
        d_(std::get<DenseDims>(spec.dims)),
        precision_(precision),
        threads_(context.threads),
        product_(make_product(context, spec, precision)) {
    row_at_ = plan_.take(static_cast<std::size_t>(d_.K) * sizeof(float));
  }

  std::size_t scratch_bytes() const override { return sums_bias() && precision_.halves() ? plan_.bytes() : 0; }
  std::string implementation() const override { return product_.implementation(); }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    const auto adds = [&](unsigned output) { return (args.accumulate >> output & 1U) != 0; };
    void* const* at = args.tensors;
    switch (kind_) {
      case OpKind::dense_forward:
        return product_.run(at[0], at[1], at[d_.bias ? 3 : 2], false, args.parameter_version,
                            d_.bias ? at[2] : nullptr);
      case OpKind::dense_backward_data: return product_.run(at[0], at[1], at[2], adds(2), args.parameter_version);
      default:
        product_.run(at[1], at[0], at[2], adds(2));
        if (d_.bias) sum_rows(args, adds(3), static_cast<float*>(at[3]));
    }
  }

 private:
  bool sums_bias() const { return kind_ == OpKind::dense_backward_weights && d_.bias; }

  // db (K) = sums of dy (N, K) over N
  void sum_rows(const OpArgs& args, bool add, float* db) const {
    if (!add) std::fill_n(db, d_.K, 0.0f);
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const float* row = wide_row(args, n);
#pragma omp simd
      for (std::int64_t k = 0; k < d_.K; ++k) db[k] += row[k];
    }
  }
  const float* wide_row(const OpArgs& args, std::int64_t n) const {
    const void* dy = args.tensors[1];
    if (!precision_.halves()) return static_cast<const float*>(dy) + n * d_.K;
    auto* row = reinterpret_cast<float*>(ScratchPlan::align(args.scratch) + row_at_);
    widen(static_cast<const BHalf*>(dy) + n * d_.K, row, d_.K, 1);
    return row;
  }

  OpKind kind_;
  DenseDims d_;
  Precision precision_;
  int threads_;
  Product product_;
  ScratchPlan plan_;
  std::size_t row_at_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_half_dense(Context& context, const OpSpec& spec, const Precision& precision) {
  return std::make_unique<HalfDense>(context, spec, precision);
}

}  // namespace echelon::inline device::onednn
