// SPDX-License-Identifier: Apache-2.0
// Convolution with optional bias, stride, padding, dilation and groups: (C, H, W) -> (K, P, Q).
// Weights are (K, C/groups, R, S), biases (K).
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/weighted.hpp"
#include "model/layers/window.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Conv final : public SplittableLayer {
 public:
  explicit Conv(const LayerConfig& config) : channels_(config.channels), groups_(config.groups), bias_(config.bias) {
    if (channels_ < 1)
      throw ConfigError("a conv layer needs the key channels, the number of output channels, at least 1");
    if (groups_ < 1) throw ConfigError(fmt::format("groups = {} must be at least 1", groups_));
    window_.kernel = required_rows_columns(config.kernel, "kernel");
    window_.stride = rows_columns(config.stride, {1, 1}, 1, "stride");
    window_.padding = rows_columns(config.padding, {0, 0}, 0, "padding");
    window_.dilation = rows_columns(config.dilation, {1, 1}, 1, "dilation");
  }

  std::string_view kind() const override { return "conv"; }
  std::string attributes() const override {
    return fmt::format("{} {}{}{}", channels_, window_text(window_, {1, 1}),
                       groups_ > 1 ? fmt::format(" groups {}", groups_) : "", bias_ ? "" : " no bias");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    require_image(inputs[0], "a convolution");
    const std::int64_t in = inputs[0][0];
    if (in % groups_ != 0 || channels_ % groups_ != 0)
      throw ConfigError(
          fmt::format("groups = {} must divide the {} input and the {} output channels", groups_, in, channels_));
    return {slide(window_, inputs[0], channels_)};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    return weight_and_bias(weight_shape(inputs), bias_, part_.inputs);
  }

  void forward(Lowering& lowering) const override {
    lower_weighted_forward(lowering, spec(OpKind::conv_forward, lowering), bias_);
  }

  void backward(Lowering& lowering) const override {
    lower_weighted_backward(lowering, spec(OpKind::conv_backward_weights, lowering),
                            spec(OpKind::conv_backward_data, lowering), bias_);
  }

  std::vector<ParameterSlice> slices(std::span<const Shape> inputs) const override {
    return weight_and_bias_slices(weight_shape(inputs), bias_, part_);
  }
  LayerPtr with_outputs(const Units& channels) const override {
    if (groups_ > 1) return nullptr;
    auto part = std::make_shared<Conv>(*this);
    part->channels_ = channels.count();
    part->part_.outputs = channels;
    return part;
  }
  LayerPtr with_inputs(const Units& channels) const override {
    if (groups_ > 1) return nullptr;
    auto part = std::make_shared<Conv>(*this);
    part->part_.inputs = channels;
    part->bias_ = bias_ && channels.begin == 0;
    return part;
  }

  std::optional<RowWindow> row_window() const override {
    RowWindow rows = rows_of(window_);
    rows.in_pieces = true;
    return rows;
  }
  LayerPtr on_rows(const Units&, int) const override {
    auto part = std::make_shared<Conv>(*this);
    part->window_.padding.rows = 0;
    return part;
  }

 private:
  Shape weight_shape(std::span<const Shape> inputs) const {
    return {channels_, inputs[0][0] / groups_, window_.kernel.rows, window_.kernel.columns};
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, C, H, W)
    ConvDims dims{.N = x[0],
                  .C = x[1],
                  .H = x[2],
                  .W = x[3],
                  .K = channels_,
                  .R = window_.kernel.rows,
                  .S = window_.kernel.columns};
    dims.stride_h = window_.stride.rows, dims.stride_w = window_.stride.columns;
    dims.pad_h = window_.padding.rows, dims.pad_w = window_.padding.columns;
    dims.dil_h = window_.dilation.rows, dims.dil_w = window_.dilation.columns;
    dims.groups = groups_;
    dims.bias = bias_;
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims};
  }

  std::int64_t channels_, groups_;
  bool bias_;
  Window window_;
  WeightPart part_;
};

}  // namespace

LayerPtr make_conv(const LayerConfig& config) { return std::make_shared<Conv>(config); }

}  // namespace echelon::inline model
