// SPDX-License-Identifier: Apache-2.0
// Learned position embedding (Gehring et al. 2017): y[t] = x[t] + w[t] for sequences (T, F), a weight for every
// position.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

class Position final : public Layer {
 public:
  std::string_view kind() const override { return "position"; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 2)
      throw ConfigError(
          fmt::format("a position layer takes a sequence of features (T, F), but its input is {}", inputs[0].text()));
    return {inputs[0]};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    return {{"weight", inputs[0], {Init::Kind::normal, 0.02}}};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::broadcast_add, lowering), {lowering.input(0), lowering.parameter(0), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::sum_samples, lowering), {lowering.grad_output(0), lowering.grad_parameter(0)});
    if (lowering.wants_grad_input(0)) lowering.pass_gradient(0, 0);
  }

 private:
  static OpSpec spec(OpKind kind, const Lowering& lowering) {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = BroadcastDims{lowering.input_shape(0)}};
  }
};

}  // namespace

LayerPtr make_position(const LayerConfig&) { return std::make_shared<Position>(); }

}  // namespace echelon::inline model
