// Fully connected layer with optional bias: (F) -> (K), y = x w^T + b. Images need a flatten layer before it.
//
// Weights (K, F) and biases (K) begin uniform in +-1/sqrt(F), PyTorch's default.
#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class Dense final : public Layer {
 public:
  explicit Dense(const LayerConfig& config) : units_(config.units), bias_(config.bias) {
    if (units_ < 1) throw ConfigError("needs units, the number of outputs, at least 1");
  }

  std::string_view kind() const override { return "dense"; }
  std::string attributes() const override { return fmt::format("{}{}", units_, bias_ ? "" : " no bias"); }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 1)
      throw ConfigError(fmt::format("a dense layer takes features (F), its input is {}; put a flatten layer before it",
                                    inputs[0].text()));
    return {Shape{units_}};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(inputs[0][0]))};
    std::vector<ParameterDecl> decls{{"weight", Shape{units_, inputs[0][0]}, init}};
    if (bias_) decls.push_back({"bias", Shape{units_}, init, false});
    return decls;
  }

  void forward(Lowering& lowering) const override {
    const OpSpec spec = this->spec(OpKind::dense_forward, lowering);
    if (bias_)
      lowering.op(spec, {lowering.input(0), lowering.parameter(0), lowering.parameter(1), lowering.output(0)},
                  ScaleSource::one, 0);
    else
      lowering.op(spec, {lowering.input(0), lowering.parameter(0), lowering.output(0)}, ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    const OpSpec weights = spec(OpKind::dense_backward_weights, lowering);
    const TensorRef x = lowering.input(0), dy = lowering.grad_output(0);
    if (bias_)
      lowering.op(weights, {x, dy, lowering.grad_parameter(0), lowering.grad_parameter(1)}, ScaleSource::one, 0);
    else
      lowering.op(weights, {x, dy, lowering.grad_parameter(0)}, ScaleSource::one, 0);
    if (lowering.wants_grad_input(0))
      lowering.op(spec(OpKind::dense_backward_data, lowering), {dy, lowering.parameter(0), lowering.grad_input(0)},
                  ScaleSource::one, 0);
  }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, F)
    return {
        .kind = kind, .dtype = lowering.dtype(), .dims = DenseDims{.N = x[0], .F = x[1], .K = units_, .bias = bias_}};
  }

  std::int64_t units_;
  bool bias_;
};

}  // namespace

LayerPtr make_dense(const LayerConfig& config) { return std::make_shared<Dense>(config); }

}  // namespace echelon
