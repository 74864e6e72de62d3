// SPDX-License-Identifier: Apache-2.0
#include "model/splits/softmax_part.hpp"

#include <fmt/format.h>

#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

enum Input : int { kLogits = 0, kLabels = 1, kWeights = 2 };

class SoftmaxLossPart final : public Layer {
 public:
  SoftmaxLossPart(const Units& classes, int cut, int parts, double smoothing)
      : classes_(classes), cut_(cut), parts_(parts), smoothing_(smoothing) {}

  std::string_view kind() const override { return "softmax_loss"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{} of {} classes", classes_.count(), classes_.all);
  }
  int arity() const override { return 3; }
  bool reads_indices(int input) const override { return input == kLabels; }
  bool reads_logits() const override { return true; }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[kLogits]}; }

  void forward(Lowering& lowering) const override {
    const std::int64_t labels = lowering.input_shape(kLabels).elems(), partials = SoftmaxPartDims::kPartials;
    const DType dtype = lowering.dtype();
    const TensorRef own = lowering.kept("partials", Shape{labels, partials}, dtype);
    const TensorRef all = lowering.kept("partials of all", Shape{labels, parts_ * partials}, dtype);
    lowering.op(spec(OpKind::loss_softmax_part, lowering), {lowering.input(kLogits), lowering.input(kLabels), own});
    lowering.transfer(cut_, own, all);
    lowering.op(spec(OpKind::loss_softmax_join, lowering),
                {all, lowering.input(kWeights), lowering.kept("norms", Shape{labels}, dtype),
                 lowering.kept("sums", Shape{3}, DType::f64)});
    lowering.alias(0, kLogits);
  }

  void backward(Lowering& lowering) const override {
    const std::int64_t labels = lowering.input_shape(kLabels).elems();
    lowering.op(spec(OpKind::loss_softmax_part_backward, lowering),
                {lowering.input(kLogits), lowering.kept("norms", Shape{labels}, lowering.dtype()),
                 lowering.input(kLabels), lowering.input(kWeights), lowering.grad_input(kLogits)},
                ScaleSource::loss_scale);
  }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = SoftmaxPartDims{.N = lowering.input_shape(kLabels).elems(),
                                    .K = classes_.count(),
                                    .first = classes_.begin,
                                    .classes = classes_.all,
                                    .parts = parts_,
                                    .smoothing = lowering.training() ? smoothing_ : 0}};
  }

  Units classes_;
  int cut_, parts_;
  double smoothing_;
};

}  // namespace

LayerPtr make_softmax_loss_part(const Units& classes, int cut, int parts, double smoothing) {
  return std::make_shared<SoftmaxLossPart>(classes, cut, parts, smoothing);
}

}  // namespace echelon::inline model
