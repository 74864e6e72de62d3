// SPDX-License-Identifier: Apache-2.0
// The sum of two or more values of one shape, as at the end of a residual block. A ReLU behind it is part of the last
// sum; backward, one pass adds the terms of its output's gradient, if there are two, and masks the sum.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Add final : public SplittableLayer {
 public:
  std::string_view kind() const override { return "add"; }
  int arity() const override { return -1; }

  LayerPtr fused_with(const Layer& next) const override {
    if (next.kind() != "relu" || relu_) return nullptr;
    auto both = std::make_shared<Add>(*this);
    both->relu_ = true;
    return both;
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) throw ConfigError("an add layer takes at least 2 inputs, but 1 is given");
    for (const Shape& input : inputs.subspan(1))
      if (!(inputs[0] == input)) throw ConfigError(difference(inputs[0], input));
    return {inputs[0]};
  }

  void forward(Lowering& lowering) const override {
    const Shape shape = lowering.input_shape(0);
    TensorRef sum = lowering.input(0);
    for (int i = 1; i < lowering.inputs(); ++i) {
      const bool last = i + 1 == lowering.inputs();
      const TensorRef next =
          last ? lowering.output(0) : lowering.kept(fmt::format("sum {}", i), shape, lowering.dtype());
      const ElementwiseDims dims{.shape = shape, .relu = relu_ && last};
      lowering.op({.kind = OpKind::add, .dtype = lowering.dtype(), .dims = dims}, {sum, lowering.input(i), next});
      sum = next;
    }
  }

  void backward(Lowering& lowering) const override {
    std::vector<int> wanting;
    for (int i = 0; i < lowering.inputs(); ++i)
      if (lowering.wants_grad_input(i)) wanting.push_back(i);
    if (wanting.empty()) return;
    const TensorRef dsum = relu_ ? gradient_of_sum(lowering) : lowering.grad_output(0);
    for (int i : wanting) lowering.give_gradient(i, dsum, true);
  }

  LayerPtr on_steps(const Units&) const override { return std::make_shared<Add>(*this); }
  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<Add>(*this); }

 private:
  // Writes the gradient of the sum in front of the relu.
  static TensorRef gradient_of_sum(Lowering& lowering) {
    const Shape shape = lowering.input_shape(0);
    const TensorRef y = lowering.output(0), dsum = lowering.kept("d sum", shape, lowering.dtype());
    const std::vector<TensorRef> dy = lowering.grad_output_terms(0);
    if (dy.size() == 2)
      lowering.op({.kind = OpKind::masked_add, .dtype = lowering.dtype(), .dims = ElementwiseDims{shape}},
                  {y, dy[0], dy[1], dsum});
    else
      lowering.op(
          {.kind = OpKind::activation_backward, .dtype = lowering.dtype(), .dims = ActivationDims{.shape = shape}},
          {y, dy[0], dsum});
    return dsum;
  }

  static std::string difference(const Shape& a, const Shape& b) {
    const std::string both =
        fmt::format("an add layer needs inputs of one shape, but two of them are {} and {}", a.text(), b.text());
    if (a.rank() != b.rank()) return both + "; put a flatten layer before one of them";
    for (int axis = 0; axis < a.rank(); ++axis)
      if (a[axis] != b[axis])
        return fmt::format("{}: the numbers of {} differ ({} and {})", both,
                           a.rank() == 1          ? "features"
                           : axis == 0            ? "channels"
                           : axis + 1 == a.rank() ? "columns"
                           : axis + 2 == a.rank() ? "rows"
                                                  : "slices",
                           a[axis], b[axis]);
    return both;
  }

  bool relu_ = false;
};

}  // namespace

LayerPtr make_add(const LayerConfig&) { return std::make_shared<Add>(); }

}  // namespace echelon::inline model
