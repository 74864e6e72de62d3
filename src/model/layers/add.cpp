// Sum of two or more values of one shape, the end of a residual block.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Add final : public SplittableLayer {
 public:
  std::string_view kind() const override { return "add"; }
  int arity() const override { return -1; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) throw ConfigError("takes at least 2 inputs, 1 given");
    for (const Shape& input : inputs.subspan(1))
      if (!(inputs[0] == input)) throw ConfigError(difference(inputs[0], input));
    return {inputs[0]};
  }

  void forward(Lowering& lowering) const override {
    const OpSpec spec{.kind = OpKind::add, .dtype = lowering.dtype(), .dims = ElementwiseDims{lowering.input_shape(0)}};
    TensorRef sum = lowering.input(0);
    for (int i = 1; i < lowering.inputs(); ++i) {
      const bool last = i + 1 == lowering.inputs();
      const TensorRef next = last ? lowering.output(0)
                                  : lowering.kept(fmt::format("sum {}", i), lowering.input_shape(0), lowering.dtype());
      lowering.op(spec, {sum, lowering.input(i), next});
      sum = next;
    }
  }

  void backward(Lowering& lowering) const override {
    for (int i = 0; i < lowering.inputs(); ++i)
      if (lowering.wants_grad_input(i)) lowering.pass_gradient(0, i);
  }

  LayerPtr on_steps(const Units&) const override { return std::make_shared<Add>(*this); }
  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<Add>(*this); }

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

}  // namespace echelon::inline model
