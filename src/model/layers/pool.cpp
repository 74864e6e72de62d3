// SPDX-License-Identifier: Apache-2.0
// Max and average pooling: (C, H, W) -> (C, P, Q), where the stride is the kernel unless it is given; and the mean of
// each channel over the whole image: (C, H, W) -> (C, 1, 1).
//
// A maximum ignores padding; an average divides by the cells inside the image, or by all cells of the window if
// `count_padding` is set.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class PoolLayer : public SplittableLayer {
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
    if (!rows_) return {slide(window_, inputs[0], inputs[0][0])};
    const PoolDims here = dims(inputs[0].prepended(1));
    ECHELON_CHECK_EQ(here.P(), rows_->count(), "{} of {} must give the rows of its spatial shard", attributes(),
                     inputs[0].text());
    return {Shape{here.C, here.P(), here.Q()}};
  }

  // The max pool of a ReLU equals the ReLU of the max pool, which has fewer elements and needs no pass of its own.
  LayerPtr behind_relu() const override {
    if (mode_ != PoolMode::max || relu_) return nullptr;
    auto both = std::make_shared<Pool>(*this);
    both->relu_ = true;
    return both;
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<Pool>(*this); }
  std::optional<RowWindow> row_window() const override {
    RowWindow rows = rows_of(window_);
    rows.pads = rows.in_pieces = true;
    return rows;
  }
  LayerPtr on_rows(const Units& rows, int) const override {
    auto part = std::make_shared<Pool>(*this);
    part->rows_ = rows;
    return part;
  }

 private:
  PoolDims dims(const Shape& x) const override {
    PoolDims dims{.N = x[0], .C = x[1], .H = x[2], .W = x[3], .R = window_.kernel.rows, .S = window_.kernel.columns};
    dims.stride_h = window_.stride.rows, dims.stride_w = window_.stride.columns;
    dims.pad_h = window_.padding.rows, dims.pad_w = window_.padding.columns;
    dims.mode = mode_;
    dims.relu = relu_;
    if (rows_) pad_rows(dims);
    return dims;
  }

  // Rows that the windows read and that x does not have are outside the image.
  void pad_rows(PoolDims& dims) const {
    const std::int64_t padding = window_.padding.rows;
    dims.pad_h = std::max<std::int64_t>(0, padding - rows_->begin * dims.stride_h);
    const std::int64_t seen = (rows_->count() - 1) * dims.stride_h + dims.R;
    dims.more_below = std::max<std::int64_t>(0, seen - dims.pad_h - dims.H) - dims.pad_h;
  }

  PoolMode mode_;
  Window window_;
  std::optional<Units> rows_;  // the output rows of a spatial shard; none: all
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

LayerPtr make_global_avg_pool(const LayerConfig&) { return std::make_shared<GlobalAveragePool>(); }

LayerPtr make_max_pool(const LayerConfig& config) { return std::make_shared<Pool>(config, PoolMode::max); }

LayerPtr make_avg_pool(const LayerConfig& config) {
  return std::make_shared<Pool>(config, config.count_padding ? PoolMode::average_all : PoolMode::average_inside);
}

}  // namespace echelon::inline model
