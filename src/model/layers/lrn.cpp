// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels (Krizhevsky et al. 2012): (C, H, W) -> (C, H, W),
// y = x / (k + alpha/size * sum of squares over `size` neighbouring channels)^beta, PyTorch's form and defaults.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Lrn final : public SplittableLayer {
 public:
  explicit Lrn(const LayerConfig& config)
      : size_(config.size), alpha_(config.alpha == 0 ? 1e-4 : config.alpha), beta_(config.beta), k_(config.k) {
    if (size_ < 1) throw ConfigError(fmt::format("size = {} must be at least 1", size_));
    if (!(k_ > 0)) throw ConfigError(fmt::format("k = {} must be above 0", k_));
    if (!(alpha_ >= 0)) throw ConfigError(fmt::format("alpha = {} must not be negative", alpha_));
  }

  std::string_view kind() const override { return "lrn"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("size {} alpha {:g} beta {:g} k {:g}", size_, alpha_, beta_, k_);
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    spatial_axes(inputs[0], "local response normalisation");
    return {inputs[0]};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::lrn_forward, lowering), {lowering.input(0), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    lowering.op(spec(OpKind::lrn_backward, lowering),
                {lowering.input(0), lowering.grad_output(0), lowering.grad_input(0)});
  }

  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<Lrn>(*this); }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, C, spatial axes)
    const SpatialExtents cells = extents_of(x, 2);
    const LrnDims dims{.N = x[0],
                       .C = x[1],
                       .H = cells.d * cells.h,
                       .W = cells.w,
                       .size = size_,
                       .alpha = alpha_,
                       .beta = beta_,
                       .k = k_};
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims};
  }

  std::int64_t size_;
  double alpha_, beta_, k_;
};

}  // namespace

LayerPtr make_lrn(const LayerConfig& config) { return std::make_shared<Lrn>(config); }

}  // namespace echelon::inline model
