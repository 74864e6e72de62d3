// SPDX-License-Identifier: Apache-2.0
// Elementwise activations of any shape. Except for gelu the derivative is a function of the output, so that the input
// need not be kept.
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class ActivationLayer final : public SplittableLayer {
 public:
  ActivationLayer(std::string_view kind, Activation function) : kind_(kind), function_(function) {}

  std::string_view kind() const override { return kind_; }
  LayerPtr fused_with(const Layer& next) const override {
    return function_ == Activation::relu ? next.behind_relu() : nullptr;
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[0]}; }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::activation_forward, lowering), {lowering.input(0), lowering.output(0)}, ScaleSource::one,
                0);
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    const TensorRef known = function_ == Activation::gelu ? lowering.input(0) : lowering.output(0);
    lowering.op(spec(OpKind::activation_backward, lowering), {known, lowering.grad_output(0), lowering.grad_input(0)},
                ScaleSource::one, 0);
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<ActivationLayer>(*this); }
  LayerPtr on_steps(const Units&) const override { return std::make_shared<ActivationLayer>(*this); }
  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<ActivationLayer>(*this); }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = ActivationDims{.shape = lowering.input_shape(0), .function = function_}};
  }

  std::string_view kind_;
  Activation function_;
};

}  // namespace

LayerPtr make_relu(const LayerConfig&) { return std::make_shared<ActivationLayer>("relu", Activation::relu); }
LayerPtr make_tanh(const LayerConfig&) { return std::make_shared<ActivationLayer>("tanh", Activation::tanh); }
LayerPtr make_sigmoid(const LayerConfig&) { return std::make_shared<ActivationLayer>("sigmoid", Activation::sigmoid); }

LayerPtr make_gelu(const LayerConfig&) { return std::make_shared<ActivationLayer>("gelu", Activation::gelu); }

}  // namespace echelon::inline model
