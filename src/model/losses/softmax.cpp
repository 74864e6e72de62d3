#include "model/losses/softmax.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class SoftmaxLoss final : public Layer {
 public:
  explicit SoftmaxLoss(std::int64_t classes) : classes_(classes) {}

  std::string_view kind() const override { return "softmax_loss"; }
  std::string attributes() const override { return fmt::format("{} classes", classes_); }
  int arity() const override { return 3; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 1)
      throw ConfigError(fmt::format("the last layer gives {}; end with a dense layer of units = {}, after a flatten",
                                    inputs[0].text(), classes_));
    if (inputs[0][0] != classes_)
      throw ConfigError(fmt::format("the last layer gives {} values but the data has {} classes; units = {} fits",
                                    inputs[0][0], classes_, classes_));
    return {Shape{classes_}};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::loss_softmax_forward, lowering),
                {lowering.input(0), lowering.input(1), lowering.input(2), lowering.output(0),
                 lowering.kept("sums", Shape{3}, DType::f64)},
                ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::loss_softmax_backward, lowering),
                {lowering.output(0), lowering.input(1), lowering.input(2), lowering.grad_input(0)},
                ScaleSource::loss_scale, 0);
  }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = SoftmaxDims{.N = lowering.batch(), .K = classes_}};
  }

  std::int64_t classes_;
};

}  // namespace

LayerPtr make_softmax_loss(std::int64_t classes) { return std::make_shared<SoftmaxLoss>(classes); }

}  // namespace echelon
