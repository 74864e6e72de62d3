// SPDX-License-Identifier: Apache-2.0
// Max and average pooling over 1 to 3 spatial axes: (C, W) -> (C, Q), (C, H, W) -> (C, P, Q) or (C, D, H, W) -> (C, O,
// P, Q), where the stride is the kernel unless it is given; and the mean of each channel over all of them, (C, 1, ..).
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
  virtual PoolDims dims(const Shape& x) const = 0;  // (N, C, spatial axes)
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }
};

class Pool final : public PoolLayer {
 public:
  Pool(const LayerConfig& config, PoolMode mode)
      : mode_(mode),
        window_{.kernel = required_kernel(config.kernel),
                .stride = {"stride", config.stride.empty() ? config.kernel : config.stride, 1, 1},
                .padding = {"padding", config.padding, 0, 0},
                .dilation = {"dilation", {}, 1, 1}} {}

  std::string_view kind() const override { return mode_ == PoolMode::max ? "max_pool" : "avg_pool"; }
  std::string attributes(std::span<const Shape> inputs) const override {
    return window_text(window_, window_.kernel, inputs[0].rank() - 1) +
           (mode_ == PoolMode::average_all ? " count padding" : "");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const int rank = spatial_axes(inputs[0], "pooling");
    for (int axis = 0; axis < rank; ++axis)  // a window inside the padding alone would have no value
      if (window_.padding.at(axis, rank) >= window_.kernel.at(axis, rank))
        throw ConfigError(fmt::format("padding {} must be smaller than the kernel {}", window_.padding.text(rank),
                                      window_.kernel.text(rank)));
    if (!rows_) return {slide(window_, inputs[0], inputs[0][0])};
    const PoolDims here = dims(inputs[0].prepended(1));
    const SpatialExtents out = here.out();
    const std::int64_t along = out[out.first_axis()];
    ECHELON_CHECK_EQ(along, rows_->count(), "{} of {} must give the rows of its spatial shard", attributes(inputs),
                     inputs[0].text());
    return {with_axes(1, here.C, out, out.rank).without_front()};
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
    const int rank = x.rank() - 2;
    PoolDims dims{.N = x[0],
                  .C = x[1],
                  .in = extents_of(x, 2),
                  .kernel = window_.kernel.on<1>(rank),
                  .stride = window_.stride.on<1>(rank),
                  .pad = window_.padding.on<0>(rank),
                  .mode = mode_,
                  .relu = relu_};
    if (rows_) pad_rows(dims);
    return dims;
  }

  // Rows that the windows read and that x does not have are outside the image.
  void pad_rows(PoolDims& dims) const {
    const int first = dims.in.first_axis();
    const std::int64_t stride = dims.stride[first];
    std::int64_t& pad = dims.pad[first];
    pad = std::max<std::int64_t>(0, window_.padding.first() - rows_->begin * stride);
    const std::int64_t seen = (rows_->count() - 1) * stride + dims.kernel[first];
    dims.more_behind = std::max<std::int64_t>(0, seen - pad - dims.in[first]) - pad;
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
    return {with_axes(1, inputs[0][0], {}, spatial_axes(inputs[0], "global pooling")).without_front()};
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<GlobalAveragePool>(); }

 private:
  PoolDims dims(const Shape& x) const override {
    const SpatialExtents all = extents_of(x, 2);
    return {.N = x[0], .C = x[1], .in = all, .kernel = all, .mode = PoolMode::average_inside};
  }
};

}  // namespace

LayerPtr make_global_avg_pool(const LayerConfig&) { return std::make_shared<GlobalAveragePool>(); }

LayerPtr make_max_pool(const LayerConfig& config) { return std::make_shared<Pool>(config, PoolMode::max); }

LayerPtr make_avg_pool(const LayerConfig& config) {
  return std::make_shared<Pool>(config, config.count_padding ? PoolMode::average_all : PoolMode::average_inside);
}

}  // namespace echelon::inline model
