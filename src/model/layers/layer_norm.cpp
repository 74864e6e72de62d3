// SPDX-License-Identifier: Apache-2.0
// Layer normalisation (Ba et al. 2016) of each sample: over its features (F), over the features of each step
// of a sequence (T, F), or over a whole image (C, H, W); with a weight and a bias for each value in the average.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

enum Slot : int { kGamma = 0, kBeta = 1 };

class LayerNorm final : public SplittableLayer {
 public:
  explicit LayerNorm(const LayerConfig& config) : epsilon_(config.epsilon) {
    if (!(epsilon_ > 0)) throw ConfigError(fmt::format("epsilon = {} must be above 0", epsilon_));
  }

  std::string_view kind() const override { return "layer_norm"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("eps {:g}", epsilon_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[0]}; }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Shape row = inputs[0].rank() == 2 ? inputs[0].without_front() : inputs[0];
    return {{.suffix = "weight", .shape = row, .init = {Init::Kind::constant, 1.0}, .decays = false},
            {.suffix = "bias", .shape = row, .init = {Init::Kind::constant, 0.0}, .decays = false}};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::layer_norm_forward, lowering),
                {lowering.input(0), lowering.parameter(kGamma), lowering.parameter(kBeta), lowering.output(0),
                 stats(lowering)});
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::layer_norm_backward, lowering),
                {lowering.input(0), lowering.grad_output(0), stats(lowering), lowering.parameter(kGamma),
                 lowering.grad_input(0), lowering.grad_parameter(kGamma), lowering.grad_parameter(kBeta)});
  }

  LayerPtr on_steps(const Units&) const override { return std::make_shared<LayerNorm>(*this); }

 private:
  LayerNormDims dims(const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, ..)
    return {.shape = x, .F = x.rank() == 3 ? x[2] : x.row_elems(), .epsilon = epsilon_};
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering)};
  }
  TensorRef stats(Lowering& lowering) const {
    return lowering.kept("stats", Shape{2, dims(lowering).rows()}, DType::f64);
  }

  double epsilon_;
};

}  // namespace

LayerPtr make_layer_norm(const LayerConfig& config) { return std::make_shared<LayerNorm>(config); }

}  // namespace echelon::inline model
