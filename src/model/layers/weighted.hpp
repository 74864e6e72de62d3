// SPDX-License-Identifier: Apache-2.0
// Parameters and lowering of layers with a weight and an optional bias: convolution and dense.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/layer.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// The units of the whole layer that a part has; none: all of them.
struct WeightPart {
  std::optional<Units> outputs, inputs;
};

// "weight" of this shape, (outputs, inputs, ..), and optionally "bias" (outputs), both uniform in +-1/sqrt(fan_in),
// PyTorch's initial values for these layers (He et al. 2015 with a = sqrt(5)). fan_in counts all `inputs` of the whole
// layer. Biases do not decay.
inline std::vector<ParameterDecl> weight_and_bias(const Shape& weight, bool bias, const std::optional<Units>& inputs) {
  const std::int64_t fan_in = inputs ? weight.row_elems() / weight[1] * inputs->all : weight.row_elems();
  const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
  std::vector<ParameterDecl> decls{{"weight", weight, init}};
  if (bias) decls.push_back({.suffix = "bias", .shape = Shape{weight[0]}, .init = init, .decays = false});
  return decls;
}

// LayerSplit::slices of these parameters. Only the part with the first inputs has the bias, if inputs are divided.
inline std::vector<ParameterSlice> weight_and_bias_slices(const Shape& weight, bool bias, const WeightPart& part) {
  if (!part.outputs && !part.inputs) return {};
  std::vector<std::int64_t> whole(weight.extents().begin(), weight.extents().end()), offset(whole.size(), 0);
  if (part.outputs) whole[0] = part.outputs->all, offset[0] = part.outputs->begin;
  if (part.inputs) whole[1] = part.inputs->all, offset[1] = part.inputs->begin;
  std::vector<ParameterSlice> slices{{.whole = Shape(whole), .offset = Shape(offset)}};
  if (bias) slices.push_back({.whole = {whole[0]}, .offset = {offset[0]}, .alone = part.inputs.has_value()});
  return slices;
}

// Op y = f(x, w [, b]) of the spec `forward`, pair 0.
inline void lower_weighted_forward(Lowering& lowering, const OpSpec& forward, bool bias) {
  if (bias)
    lowering.op(forward, {lowering.input(0), lowering.parameter(0), lowering.parameter(1), lowering.output(0)},
                ScaleSource::one, 0);
  else
    lowering.op(forward, {lowering.input(0), lowering.parameter(0), lowering.output(0)}, ScaleSource::one, 0);
}

// Ops dw [, db] from (x, dy), then dx from (dy, w) if the gradient of the input is needed, both pair 0.
inline void lower_weighted_backward(Lowering& lowering, const OpSpec& weights, const OpSpec& data, bool bias) {
  const TensorRef x = lowering.input(0), dy = lowering.grad_output(0);
  if (bias)
    lowering.op(weights, {x, dy, lowering.grad_parameter(0), lowering.grad_parameter(1)}, ScaleSource::one, 0);
  else
    lowering.op(weights, {x, dy, lowering.grad_parameter(0)}, ScaleSource::one, 0);
  if (lowering.wants_grad_input(0))
    lowering.op(data, {dy, lowering.parameter(0), lowering.grad_input(0)}, ScaleSource::one, 0);
}

}  // namespace echelon::inline model
