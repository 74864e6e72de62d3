// What layers with a weight and an optional bias share: convolution and dense.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/layer.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

// "weight" of this shape and, where wanted, "bias" of its outermost extent, both uniform in +-1/sqrt(fan_in): what
// PyTorch starts these layers with (He et al. 2015 with a = sqrt(5)). Biases do not decay.
inline std::vector<ParameterDecl> weight_and_bias(const Shape& weight, bool bias) {
  const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(weight.row_elems()))};
  std::vector<ParameterDecl> decls{{"weight", weight, init}};
  if (bias) decls.push_back({"bias", Shape{weight[0]}, init, false});
  return decls;
}

// Which of the outputs and inputs of a whole layer a part has.
struct WeightPart {
  std::optional<Units> outputs, inputs;
};

// The same for a part: slices of the tensors of the whole, (outputs, inputs, ..).
inline std::vector<ParameterDecl> weight_and_bias(const Shape& weight, bool bias, const WeightPart& part) {
  std::vector<std::int64_t> whole(weight.extents().begin(), weight.extents().end()), offset(whole.size(), 0);
  if (part.outputs) whole[0] = part.outputs->all, offset[0] = part.outputs->begin;
  if (part.inputs) whole[1] = part.inputs->all, offset[1] = part.inputs->begin;
  std::vector<ParameterDecl> decls = weight_and_bias(Shape(whole), bias);
  decls[0].whole = decls[0].shape;
  decls[0].shape = weight;
  decls[0].offset = Shape(offset);
  if (bias && part.inputs) decls[1].alone = true;
  if (bias && part.outputs) {
    decls[1].whole = decls[1].shape;
    decls[1].shape = Shape{weight[0]};
    decls[1].offset = Shape{part.outputs->begin};
  }
  return decls;
}

// y from x, w [, b].
inline void lower_weighted_forward(Lowering& lowering, const OpSpec& forward, bool bias) {
  if (bias)
    lowering.op(forward, {lowering.input(0), lowering.parameter(0), lowering.parameter(1), lowering.output(0)},
                ScaleSource::one, 0);
  else
    lowering.op(forward, {lowering.input(0), lowering.parameter(0), lowering.output(0)}, ScaleSource::one, 0);
}

// dw [, db] from x, dy; then dx from dy, w where it is wanted.
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
