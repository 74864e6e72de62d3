// SPDX-License-Identifier: Apache-2.0
// Concatenation of values along their channels, (C1, H, W), (C2, H, W), .. -> (C1 + C2 + .., H, W), features
// (F1), (F2), .. -> (F1 + F2 + ..), or sequences (T, F1), (T, F2), .. -> (T, F1 + F2 + ..).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Concat final : public SplittableLayer {
 public:
  std::string_view kind() const override { return "concat"; }
  int arity() const override { return -1; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) throw ConfigError("a concat layer takes at least 2 inputs, but 1 is given");
    const Shape& first = inputs[0];
    if (first.rank() < 1 || first.rank() > 4)
      throw ConfigError(
          fmt::format("a concat layer takes images (channels, rows, columns), volumes (channels, slices, rows, "
                      "columns), features (F) or sequences (T, F), but its first input is {}",
                      first.text()));
    std::int64_t channels = 0;
    for (const Shape& input : inputs) {
      if (input.rank() != first.rank() || !(with_channels(input, 1) == with_channels(first, 1)))
        throw ConfigError(
            fmt::format("the inputs of a concat layer may differ only in their {}, but two of them are {} and {}",
                        first.rank() > 2 ? "channels" : "features", first.text(), input.text()));
      channels += input.rank() == 2 ? input[1] : input[0];
    }
    return {with_channels(first, channels)};
  }

  // An op takes at most kMaxConcat inputs; its result is the first input of the next op.
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
        take(lowering.input(next), channels_of(lowering.input_shape(next)));
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
      const std::int64_t count = channels_of(lowering.input_shape(i));
      const SliceDims dims{e.N, channels_of(lowering.output_shape(0)), e.H, e.W, first, count};
      if (lowering.wants_grad_input(i))
        lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = dims},
                    {lowering.grad_output(0), lowering.grad_input(i)});
      first += count;
    }
  }

  LayerPtr on_steps(const Units&) const override { return std::make_shared<Concat>(*this); }
  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<Concat>(*this); }

 private:
  // The ops treat a sequence as N*T samples of F channels.
  struct Extents {
    std::int64_t N, H, W;
  };
  static Extents extents(const Lowering& lowering) {
    const Shape x = lowering.input_shape(0);  // (N, C, H, W), (N, C, D, H, W), (N, F) or (N, T, F)
    if (x.rank() < 4) return {x.rank() == 3 ? x[0] * x[1] : x[0], 1, 1};
    const std::int64_t W = x[x.rank() - 1];
    return {x[0], x.row_elems() / (x[1] * W), W};
  }
  static std::int64_t channels_of(const Shape& x) { return x.rank() == 3 ? x[2] : x[1]; }
  static Shape with_channels(const Shape& sample, std::int64_t channels) {
    return sample.rank() == 2 ? Shape{sample[0], channels} : sample.with_front(channels);
  }
};

}  // namespace

LayerPtr make_concat(const LayerConfig&) { return std::make_shared<Concat>(); }

}  // namespace echelon::inline model
