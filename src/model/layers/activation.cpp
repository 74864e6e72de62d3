// SPDX-License-Identifier: Apache-2.0
// Elementwise activations of any shape. Except for gelu the derivative is a function of the output, so that the input
// need not be kept.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class ActivationLayer final : public SplittableLayer {
 public:
  // `key`: the key with the number `a`; "": the function has none.
  ActivationLayer(std::string_view kind, Activation function, std::string_view key = {}, double a = 0)
      : kind_(kind), function_(function), key_(key), a_(a) {}

  std::string_view kind() const override { return kind_; }
  std::string attributes(std::span<const Shape>) const override {
    return key_.empty() ? std::string() : fmt::format("{} {:g}", key_, a_);
  }
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
            .dims = ActivationDims{.shape = lowering.input_shape(0), .function = function_, .a = a_}};
  }

  std::string_view kind_;
  Activation function_;
  std::string_view key_;
  double a_;
};

// A factor of negative values, which must not turn their sign: the derivative is a function of the output.
double slope_of(std::string_view key, double value) {
  if (value >= 0) return value;
  throw ConfigError(fmt::format("{} = {} must be at least 0", key, value));
}

}  // namespace

LayerPtr make_relu(const LayerConfig&) { return std::make_shared<ActivationLayer>("relu", Activation::relu); }
LayerPtr make_tanh(const LayerConfig&) { return std::make_shared<ActivationLayer>("tanh", Activation::tanh); }
LayerPtr make_sigmoid(const LayerConfig&) { return std::make_shared<ActivationLayer>("sigmoid", Activation::sigmoid); }

LayerPtr make_gelu(const LayerConfig&) { return std::make_shared<ActivationLayer>("gelu", Activation::gelu); }
LayerPtr make_leaky_relu(const LayerConfig& config) {
  return std::make_shared<ActivationLayer>("leaky_relu", Activation::leaky_relu, "slope",
                                           slope_of("slope", config.slope));
}
LayerPtr make_elu(const LayerConfig& config) {
  return std::make_shared<ActivationLayer>("elu", Activation::elu, "alpha",
                                           slope_of("alpha", config.alpha == 0 ? 1 : config.alpha));
}
LayerPtr make_softplus(const LayerConfig&) {
  return std::make_shared<ActivationLayer>("softplus", Activation::softplus);
}
LayerPtr make_scale(const LayerConfig& config) {
  return std::make_shared<ActivationLayer>("scale", Activation::scale, "alpha", config.alpha);
}

}  // namespace echelon::inline model
