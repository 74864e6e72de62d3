// Max and average pooling: (C, H, W) -> (C, P, Q), the stride being the kernel unless given; and the mean of each
// channel over the whole image: (C, H, W) -> (C, 1, 1).
//
// A maximum ignores padding; an average divides by the cells inside the image, or by all of the window where
// `count_padding` is set.
#include "model/layers/pool.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class PoolLayer : public Layer {
 public:
  void forward(Lowering& lowering) const final {
    lowering.op(spec(OpKind::pool_forward, lowering), {lowering.input(0), lowering.output(0)}, ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const final {
    if (!lowering.wants_grad_input(0)) return;
    lowering.op(spec(OpKind::pool_backward, lowering), {lowering.grad_output(0), lowering.grad_input(0)},
                ScaleSource::one, 0);
  }

 private:
  virtual PoolDims dims(const Shape& x) const = 0;  // (N, C, H, W)
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }
};

class Pool final : public PoolLayer {
 public:
  Pool(const LayerConfig& config, PoolMode mode) : mode_(mode) {
    window_.kernel = required_rows_columns(config.kernel, "kernel");
    window_.stride = rows_columns(config.stride, window_.kernel, 1, "stride");
    window_.padding = rows_columns(config.padding, {0, 0}, 0, "padding");
    // A window inside the padding alone would have no value.
    if (window_.padding.rows >= window_.kernel.rows || window_.padding.columns >= window_.kernel.columns)
      throw ConfigError(
          fmt::format("padding {} must be smaller than the kernel {}", window_.padding.text(), window_.kernel.text()));
  }

  std::string_view kind() const override { return mode_ == PoolMode::max ? "max_pool" : "avg_pool"; }
  std::string attributes() const override {
    return window_text(window_, window_.kernel) + (mode_ == PoolMode::average_all ? " count padding" : "");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    require_image(inputs[0], "pooling");
    return {slide(window_, inputs[0], inputs[0][0])};
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<Pool>(*this); }

  std::optional<RowWindow> row_window() const override {
    if (mode_ == PoolMode::average_inside && window_.padding.rows > 0)
      throw ConfigError(
          "divides by the cells inside the image, which a part of its rows does not know: write count_padding = true, "
          "or leave the rows' padding out");
    RowWindow rows = rows_of(window_);
    rows.lowest = mode_ == PoolMode::max;
    return rows;
  }
  LayerPtr on_rows(const Units&, int) const override {
    auto part = std::make_shared<Pool>(*this);
    part->window_.padding.rows = 0;
    return part;
  }

  LayerPtr behind_relu() const {
    if (mode_ != PoolMode::max || relu_) return nullptr;
    auto both = std::make_shared<Pool>(*this);
    both->relu_ = true;
    return both;
  }

 private:
  PoolDims dims(const Shape& x) const override {
    PoolDims dims{.N = x[0], .C = x[1], .H = x[2], .W = x[3], .R = window_.kernel.rows, .S = window_.kernel.columns};
    dims.stride_h = window_.stride.rows, dims.stride_w = window_.stride.columns;
    dims.pad_h = window_.padding.rows, dims.pad_w = window_.padding.columns;
    dims.mode = mode_;
    dims.relu = relu_;
    return dims;
  }

  PoolMode mode_;
  Window window_;
  bool relu_ = false;
};

// Lin, Chen, Yan 2013.
class GlobalAveragePool final : public PoolLayer {
 public:
  std::string_view kind() const override { return "global_avg_pool"; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    require_image(inputs[0], "global pooling");
    return {Shape{inputs[0][0], 1, 1}};
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<GlobalAveragePool>(); }

 private:
  PoolDims dims(const Shape& x) const override {
    PoolDims dims{.N = x[0], .C = x[1], .H = x[2], .W = x[3], .R = x[2], .S = x[3]};
    dims.mode = PoolMode::average_inside;
    return dims;
  }
};

}  // namespace

LayerPtr behind_relu(const Layer& layer) {
  const auto* pool = dynamic_cast<const Pool*>(&layer);
  return pool ? pool->behind_relu() : nullptr;
}

LayerPtr make_global_avg_pool(const LayerConfig&) { return std::make_shared<GlobalAveragePool>(); }

LayerPtr make_max_pool(const LayerConfig& config) { return std::make_shared<Pool>(config, PoolMode::max); }

LayerPtr make_avg_pool(const LayerConfig& config) {
  return std::make_shared<Pool>(config, config.count_padding ? PoolMode::average_all : PoolMode::average_inside);
}

}  // namespace echelon
