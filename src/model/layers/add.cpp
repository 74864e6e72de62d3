// Sum of two values of one shape, the end of a residual block.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class Add final : public Layer {
 public:
  std::string_view kind() const override { return "add"; }
  int arity() const override { return 2; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (!(inputs[0] == inputs[1])) throw ConfigError(difference(inputs[0], inputs[1]));
    return {inputs[0]};
  }

  void forward(Lowering& lowering) const override {
    lowering.op({.kind = OpKind::add, .dtype = lowering.dtype(), .dims = ElementwiseDims{lowering.input_shape(0)}},
                {lowering.input(0), lowering.input(1), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    for (int i = 0; i < 2; ++i)
      if (lowering.wants_grad_input(i)) lowering.pass_gradient(0, i);
  }

 private:
  static std::string difference(const Shape& a, const Shape& b) {
    const std::string both = fmt::format("adds values of one shape, its inputs are {} and {}", a.text(), b.text());
    if (a.rank() != b.rank()) return both + ": one needs a flatten layer";
    for (int axis = 0; axis < a.rank(); ++axis)
      if (a[axis] != b[axis])
        return fmt::format("{}: {} differ ({} against {})", both,
                           a.rank() == 1 ? "features"
                           : axis == 0   ? "channels"
                           : axis == 1   ? "rows"
                                         : "columns",
                           a[axis], b[axis]);
    return both;
  }
};

}  // namespace

LayerPtr make_add(const LayerConfig&) { return std::make_shared<Add>(); }

}  // namespace echelon
