// The mean of each channel over the whole image: (C, H, W) -> (C, 1, 1). Lin, Chen, Yan 2013.
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class GlobalAveragePool final : public Layer {
 public:
  std::string_view kind() const override { return "global_avg_pool"; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    require_image(inputs[0], "global pooling");
    return {Shape{inputs[0][0], 1, 1}};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::pool_forward, lowering), {lowering.input(0), lowering.output(0)}, ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    lowering.op(spec(OpKind::pool_backward, lowering), {lowering.grad_output(0), lowering.grad_input(0)},
                ScaleSource::one, 0);
  }

 private:
  static OpSpec spec(OpKind kind, const Lowering& lowering) {
    const Shape x = lowering.input_shape(0);  // (N, C, H, W)
    PoolDims dims{.N = x[0], .C = x[1], .H = x[2], .W = x[3], .R = x[2], .S = x[3]};
    dims.mode = PoolMode::average_inside;
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims};
  }
};

}  // namespace

LayerPtr make_global_avg_pool(const LayerConfig&) { return std::make_shared<GlobalAveragePool>(); }

}  // namespace echelon
