// SPDX-License-Identifier: Apache-2.0
// Upsampling by whole factors over 1 to 3 spatial axes: (C, H, W) -> (C, factor * H, factor * W). `nearest` repeats
// cells, `linear` interpolates between their centres (device/ops/upsample.hpp).
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Upsample final : public SplittableLayer {
 public:
  explicit Upsample(const LayerConfig& config)
      : factor_("factor", config.factor, 1, 1), linear_(config.mode == "linear") {
    const std::vector<std::string> known = {"nearest", "linear"};
    if (!linear_ && config.mode != known[0]) throw ConfigError(unknown_name("mode", config.mode, known));
  }

  std::string_view kind() const override { return "upsample"; }
  std::string attributes(std::span<const Shape> inputs) const override {
    return fmt::format("{} {}", factor_.text(inputs[0].rank() - 1), linear_ ? "linear" : "nearest");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    spatial_axes(inputs[0], "upsampling");
    const UpsampleDims all = dims(inputs[0].prepended(1));
    return {with_axes(1, all.C, all.out(), all.in.rank).without_front()};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::upsample_forward, lowering), {lowering.input(0), lowering.output(0)}, ScaleSource::one, 0);
  }
  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    lowering.op(spec(OpKind::upsample_backward, lowering), {lowering.grad_output(0), lowering.grad_input(0)},
                ScaleSource::one, 0);
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<Upsample>(*this); }

 private:
  UpsampleDims dims(const Shape& x) const {  // (N, C, spatial axes)
    return {.N = x[0], .C = x[1], .in = extents_of(x, 2), .factor = factor_.on<1>(x.rank() - 2), .linear = linear_};
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }

  AxesKey factor_;
  bool linear_;
};

}  // namespace

LayerPtr make_upsample(const LayerConfig& config) { return std::make_shared<Upsample>(config); }

}  // namespace echelon::inline model
