// SPDX-License-Identifier: Apache-2.0
// ReLU, the sum of two activations, and both at once in bf16, without copies in f32. Padding included, as in f32.
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

class HalfElementwise final : public Op {
 public:
  HalfElementwise(const Context& context, OpKind kind, bool relu, std::int64_t elems)
      : kind_(kind), relu_(relu), elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* a = static_cast<const BHalf*>(args.tensors[0]);
    if (kind_ == OpKind::activation_forward) return relu(a, static_cast<BHalf*>(args.tensors[1]));
    const auto* b = static_cast<const BHalf*>(args.tensors[1]);
    auto* out = static_cast<BHalf*>(args.tensors[2]);
    if (kind_ == OpKind::masked_add) return masked_add(a, b, out, static_cast<BHalf*>(args.tensors[3]));
    if (kind_ == OpKind::add) return relu_ ? add_relu(a, b, out) : add_halves(a, b, out, elems_, threads_);
    (args.accumulate & 4U) != 0 ? relu_backward<true>(a, b, out) : relu_backward<false>(a, b, out);
  }

 private:
  // Returns the value or 0; by bits, because a selection between two sums is not vectorised.
  static BHalf kept(BHalf value, bool keep) { return value & static_cast<BHalf>(keep ? 0xffff : 0); }
  bool worth_a_team() const { return threads_ > 1 && elems_ >= kParallelElems; }

  // NaN stays NaN.
  void relu(const BHalf* x, BHalf* y) const {
#pragma omp parallel for simd num_threads(threads_) if (parallel : worth_a_team())
    for (std::int64_t i = 0; i < elems_; ++i) y[i] = widened(x[i]) < 0.0f ? BHalf{0} : x[i];
  }
  template <bool kAdd>
  void relu_backward(const BHalf* y, const BHalf* dy, BHalf* dx) const {
#pragma omp parallel for simd num_threads(threads_) if (parallel : worth_a_team())
    for (std::int64_t i = 0; i < elems_; ++i) {
      const BHalf part = kept(dy[i], widened(y[i]) > 0.0f);
      dx[i] = kAdd ? rounded(widened(dx[i]) + widened(part)) : part;
    }
  }

  void add_relu(const BHalf* a, const BHalf* b, BHalf* y) const {
#pragma omp parallel for simd num_threads(threads_) if (parallel : worth_a_team())
    for (std::int64_t i = 0; i < elems_; ++i) {
      const float sum = widened(a[i]) + widened(b[i]);
      y[i] = kept(rounded(sum), !(sum < 0.0f));
    }
  }
  void masked_add(const BHalf* mask, const BHalf* a, const BHalf* b, BHalf* y) const {
#pragma omp parallel for simd num_threads(threads_) if (parallel : worth_a_team())
    for (std::int64_t i = 0; i < elems_; ++i) {
      y[i] = kept(rounded(widened(a[i]) + widened(b[i])), widened(mask[i]) > 0.0f);
    }
  }

  OpKind kind_;
  bool relu_;
  std::int64_t elems_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_half_elementwise(Context& context, const OpSpec& spec) {
  const auto* sum = std::get_if<ElementwiseDims>(&spec.dims);
  if (!sum && std::get<ActivationDims>(spec.dims).function != Activation::relu) return nullptr;
  const Shape& shape = sum ? sum->shape : std::get<ActivationDims>(spec.dims).shape;
  return std::make_unique<HalfElementwise>(context, spec.kind, sum && sum->relu, stored_elems(shape, spec.layouts[0]));
}

}  // namespace echelon::inline device::onednn
