// Values behind one another along their channels, (C1, H, W), (C2, H, W), .. -> (C1 + C2 + .., H, W), or features
// (F1), (F2), .. -> (F1 + F2 + ..).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class Concat final : public Layer {
 public:
  std::string_view kind() const override { return "concat"; }
  int arity() const override { return -1; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) throw ConfigError("takes at least 2 inputs, 1 given");
    const Shape& first = inputs[0];
    if (first.rank() != 3 && first.rank() != 1)
      throw ConfigError(
          fmt::format("joins images (channels, rows, columns) or features (F), its first input is {}", first.text()));
    std::int64_t channels = 0;
    for (const Shape& input : inputs) {
      if (input.rank() != first.rank() || !(input.with_front(1) == first.with_front(1)))
        throw ConfigError(fmt::format("joins values that differ in their {} alone, two of its inputs are {} and {}",
                                      first.rank() == 3 ? "channels" : "features", first.text(), input.text()));
      channels += input[0];
    }
    return {first.with_front(channels)};
  }

  // An op joins as many as it has arguments; what it gave is the first of the next.
  void forward(Lowering& lowering) const override {
    const Extents e = extents(lowering);
    std::int64_t joined_channels = 0;
    TensorRef joined;
    for (int next = 0, part = 0; next < lowering.inputs(); ++part) {
      ConcatDims dims{.N = e.N, .H = e.H, .W = e.W, .channels = {}};
      std::vector<TensorRef> args;
      const auto take = [&](TensorRef tensor, std::int64_t channels) {
        dims.channels[args.size()] = channels;
        args.push_back(tensor);
      };
      if (part > 0) take(joined, joined_channels);
      for (; next < lowering.inputs() && args.size() < kMaxConcat; ++next)
        take(lowering.input(next), lowering.input_shape(next)[1]);
      joined_channels = dims.C();
      joined = next == lowering.inputs() ? lowering.output(0)
                                         : lowering.kept(fmt::format("part {}", part),
                                                         Shape{e.N, joined_channels, e.H, e.W}, lowering.dtype());
      args.push_back(joined);
      lowering.op({.kind = OpKind::concat, .dtype = lowering.dtype(), .dims = dims}, args);
    }
  }

  void backward(Lowering& lowering) const override {
    const Extents e = extents(lowering);
    std::int64_t first = 0;
    for (int i = 0; i < lowering.inputs(); ++i) {
      const std::int64_t count = lowering.input_shape(i)[1];
      const SliceDims dims{e.N, lowering.output_shape(0)[1], e.H, e.W, first, count};
      if (lowering.wants_grad_input(i))
        lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = dims},
                    {lowering.grad_output(0), lowering.grad_input(i)});
      first += count;
    }
  }

 private:
  struct Extents {
    std::int64_t N, H, W;
  };
  static Extents extents(const Lowering& lowering) {
    const Shape x = lowering.input_shape(0);  // (N, C, H, W) or (N, F)
    return {x[0], x.rank() == 4 ? x[2] : 1, x.rank() == 4 ? x[3] : 1};
  }
};

}  // namespace

LayerPtr make_concat(const LayerConfig&) { return std::make_shared<Concat>(); }

}  // namespace echelon
