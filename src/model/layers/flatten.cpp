// SPDX-License-Identifier: Apache-2.0
// (C, H, W) -> (C*H*W): the same memory with another shape; no op unless the layout of the input is not plain.
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Flatten final : public SplittableLayer {
 public:
  std::string_view kind() const override { return "flatten"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {Shape{inputs[0].elems()}}; }
  void forward(Lowering& lowering) const override { lowering.alias(0, 0); }
  void backward(Lowering&) const override {}  // the gradients share memory too
  LayerPtr on_channels(const Units&) const override { return std::make_shared<Flatten>(); }
};

}  // namespace

LayerPtr make_flatten(const LayerConfig&) { return std::make_shared<Flatten>(); }

}  // namespace echelon::inline model
