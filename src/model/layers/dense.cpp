// SPDX-License-Identifier: Apache-2.0
// Fully connected layer with optional bias: (F) -> (K), y = x w^T + b; for a sequence, (T, F) -> (T, K), at each
// position. Images need a flatten layer before it. Weights are (K, F), biases (K).
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/weighted.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Dense final : public SplittableLayer {
 public:
  explicit Dense(const LayerConfig& config) : units_(config.units), bias_(config.bias), weights_of_(config.weights_of) {
    if (units_ < 1) throw ConfigError("a dense layer needs the key units, the number of outputs, at least 1");
  }

  std::string_view kind() const override { return "dense"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{}{}{}", units_, bias_ ? "" : " no bias",
                       weights_of_.empty() ? "" : ", weights of " + weights_of_);
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() == 1) return {Shape{units_}};
    if (inputs[0].rank() == 2) return {Shape{inputs[0][0], units_}};
    throw ConfigError(
        fmt::format("a dense layer takes features (F) or a sequence of them (T, F), but its input is {}; put a "
                    "flatten layer before it",
                    inputs[0].text()));
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterDecl> decls = weight_and_bias(weight_shape(inputs), bias_, part_.inputs);
    decls.front().of = weights_of_;
    return decls;
  }

  void forward(Lowering& lowering) const override {
    lower_weighted_forward(lowering, spec(OpKind::dense_forward, lowering), bias_);
  }

  void backward(Lowering& lowering) const override {
    lower_weighted_backward(lowering, spec(OpKind::dense_backward_weights, lowering),
                            spec(OpKind::dense_backward_data, lowering), bias_);
  }

  std::vector<ParameterSlice> slices(std::span<const Shape> inputs) const override {
    return weight_and_bias_slices(weight_shape(inputs), bias_, part_);
  }
  LayerPtr with_outputs(const Units& units) const override {
    auto part = std::make_shared<Dense>(*this);
    part->units_ = units.count();
    part->part_.outputs = units;
    return part;
  }
  LayerPtr with_inputs(const Units& units) const override {
    auto part = std::make_shared<Dense>(*this);
    part->part_.inputs = units;
    part->bias_ = bias_ && units.begin == 0;
    return part;
  }
  LayerPtr on_steps(const Units&) const override { return std::make_shared<Dense>(*this); }

 private:
  Shape weight_shape(std::span<const Shape> inputs) const { return {units_, inputs[0][inputs[0].rank() - 1]}; }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, F) or (N, T, F)
    const std::int64_t F = x[x.rank() - 1];
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = DenseDims{.N = x.elems() / F, .F = F, .K = units_, .bias = bias_}};
  }

  std::int64_t units_;
  bool bias_;
  std::string weights_of_;
  WeightPart part_;
};

}  // namespace

LayerPtr make_dense(const LayerConfig& config) { return std::make_shared<Dense>(config); }

}  // namespace echelon::inline model
