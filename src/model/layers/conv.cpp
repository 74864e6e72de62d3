// SPDX-License-Identifier: Apache-2.0
// Convolution with optional bias, stride, padding, dilation and groups over 1 to 3 spatial axes: (C, W) -> (K, Q),
// (C, H, W) -> (K, P, Q) or (C, D, H, W) -> (K, O, P, Q). Weights are (K, C/groups, kernel), biases (K).
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
  explicit Conv(const LayerConfig& config)
      : channels_(config.channels), groups_(config.groups), bias_(config.bias), window_(conv_window(config, "conv")) {}

  std::string_view kind() const override { return "conv"; }
  std::string attributes(std::span<const Shape> inputs) const override {
    return fmt::format("{} {}{}{}", channels_, window_text(window_, {"stride", {}, 1, 1}, inputs[0].rank() - 1),
                       groups_ > 1 ? fmt::format(" groups {}", groups_) : "", bias_ ? "" : " no bias");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    spatial_axes(inputs[0], "a convolution");
    require_groups(groups_, inputs[0][0], channels_);
    if (!cut_) return {slide(window_, inputs[0], channels_)};
    return {out_of(dims(inputs[0].prepended(1)))};
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
    if (cut_) rows.padding = 0;
    return rows;
  }
  LayerPtr on_rows(const Units&, int) const override {
    auto part = std::make_shared<Conv>(*this);
    part->cut_ = true;
    return part;
  }

 private:
  Shape weight_shape(std::span<const Shape> inputs) const {
    const int rank = inputs[0].rank() - 1;
    return with_axes(channels_, inputs[0][0] / groups_, window_.kernel.on<1>(rank), rank);
  }
  ConvDims dims(const Shape& x) const {  // (N, C, spatial axes)
    const int rank = x.rank() - 2;
    ConvDims dims{.N = x[0],
                  .C = x[1],
                  .in = extents_of(x, 2),
                  .K = channels_,
                  .kernel = window_.kernel.on<1>(rank),
                  .stride = window_.stride.on<1>(rank),
                  .pad = window_.padding.on<0>(rank),
                  .dil = window_.dilation.on<1>(rank),
                  .groups = groups_,
                  .bias = bias_};
    if (cut_) dims.pad[dims.in.first_axis()] = 0;
    return dims;
  }
  static Shape out_of(const ConvDims& dims) { return with_axes(1, dims.K, dims.out(), dims.in.rank).without_front(); }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }

  std::int64_t channels_, groups_;
  bool bias_;
  Window window_;
  bool cut_ = false;  // the layer of a spatial shard, whose input includes the padding of the first axis
  WeightPart part_;
};

}  // namespace

LayerPtr make_conv(const LayerConfig& config) { return std::make_shared<Conv>(config); }

}  // namespace echelon::inline model
