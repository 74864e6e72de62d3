// SPDX-License-Identifier: Apache-2.0
// Transposed convolution over 1 to 3 spatial axes, the gradient of a convolution's input as a layer (Zeiler et al.
// 2010): (C, H, W) -> (K, P, Q), where along each axis P = (H - 1) stride - 2 padding + dilation (R - 1) +
// output_padding + 1. Weights are (C, K/groups, kernel), biases (K).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/weighted.hpp"
#include "model/layers/window.hpp"
#include "model/splits/taken_rows.hpp"
#include "model/splits/window_pieces.hpp"

namespace echelon::inline model {
namespace {

class ConvTranspose final : public SplittableLayer {
 public:
  explicit ConvTranspose(const LayerConfig& config)
      : channels_(config.channels),
        groups_(config.groups),
        bias_(config.bias),
        window_(conv_window(config, "conv_transpose")),
        output_padding_("output_padding", config.output_padding, 0, 0) {}

  std::string_view kind() const override { return "conv_transpose"; }
  std::string attributes(std::span<const Shape> inputs) const override {
    const int rank = inputs[0].rank() - 1;
    return fmt::format("{} {}{}{}{}", channels_, window_text(window_, {"stride", {}, 1, 1}, rank),
                       output_padding_.is(0) ? "" : " output pad " + output_padding_.short_text(rank),
                       groups_ > 1 ? fmt::format(" groups {}", groups_) : "", bias_ ? "" : " no bias");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const int rank = spatial_axes(inputs[0], "a transposed convolution");
    require_groups(groups_, inputs[0][0], channels_);
    for (int axis = 0; axis < rank; ++axis)
      if (output_padding_.at(axis, rank) >= window_.stride.at(axis, rank))
        throw ConfigError(fmt::format("output_padding {} must be smaller than the stride {}",
                                      output_padding_.text(rank), window_.stride.text(rank)));
    const ConvDims all = dims(inputs[0].prepended(1));
    for (int axis = all.in.first_axis(); axis < kMostAxes; ++axis)
      if (all.in[axis] < 1)
        throw ConfigError(
            fmt::format("padding {} leaves nothing of the output; use a smaller padding or a larger kernel",
                        window_.padding.text(rank)));
    const Shape out = with_axes(1, channels_, all.in, rank).without_front();
    return {rows_ ? out.with(1, rows_->count()) : out};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterDecl> decls = weight_and_bias(dims(inputs[0].prepended(1)).w(), bias_, {});
    if (bias_) decls[1].shape = {channels_};
    return decls;
  }

  void forward(Lowering& lowering) const override {
    const TensorRef y = lowering.output(0);
    const TensorRef sum = bias_ ? lowering.kept("sum", lowering.output_shape(0), lowering.dtype()) : y;
    const TakenRows rows = taken(lowering);
    const TensorRef all = rows.room(sum);
    lowering.op(spec(OpKind::conv_backward_data, lowering), {lowering.input(0), lowering.parameter(0), all},
                ScaleSource::one, 0);
    rows.take(all, sum);
    if (bias_) lowering.op(bias(OpKind::broadcast_add, lowering), {sum, lowering.parameter(1), y});
  }

  void backward(Lowering& lowering) const override {
    const TensorRef x = lowering.input(0), dy = lowering.grad_output(0);
    const TensorRef all = taken(lowering).gradient();
    lowering.op(spec(OpKind::conv_backward_weights, lowering), {all, x, lowering.grad_parameter(0)}, ScaleSource::one,
                0);
    if (bias_) lowering.op(bias(OpKind::sum_samples, lowering), {dy, lowering.grad_parameter(1)});
    if (lowering.wants_grad_input(0))
      lowering.op(spec(OpKind::conv_forward, lowering), {all, lowering.parameter(0), lowering.grad_input(0)},
                  ScaleSource::one, 0);
  }

  // Row p of the output depends on the input's rows h with h stride = p + padding - dilation r for an r of the kernel.
  std::optional<RowWindow> row_window() const override {
    const std::int64_t last = reach() - 1, padding = window_.padding.first();
    return RowWindow{.reach = reach(), .padding = last - padding, .up = window_.stride.first(), .pads = true};
  }
  LayerPtr on_rows(const Units& rows, int) const override {
    auto part = std::make_shared<ConvTranspose>(*this);
    part->rows_ = rows;
    return part;
  }

 private:
  std::int64_t reach() const { return window_.dilation.first() * (window_.kernel.first() - 1) + 1; }
  // The output's first row among those that the input's rows contribute to, the first of which has no padding before
  // it.
  std::int64_t skipped() const {
    const std::int64_t first = std::max<std::int64_t>(0, rows_seen(*row_window(), {rows_->begin, rows_->end}).begin);
    return rows_->begin + window_.padding.first() - first * window_.stride.first();
  }
  TakenRows taken(Lowering& lowering) const {
    if (!rows_) return {lowering, 0, lowering.output_shape(0)[2]};
    const ConvDims all = dims(lowering.input_shape(0));
    return {lowering, skipped(), all.in[all.in.first_axis()]};
  }

  // The convolution whose output is the layer's input, (N, C, spatial axes).
  ConvDims dims(const Shape& x) const {
    const int rank = x.rank() - 2;
    const SpatialExtents from = extents_of(x, 2);
    ConvDims dims{.N = x[0],
                  .C = channels_,
                  .in = from,
                  .K = x[1],
                  .kernel = window_.kernel.on<1>(rank),
                  .stride = window_.stride.on<1>(rank),
                  .pad = window_.padding.on<0>(rank),
                  .dil = window_.dilation.on<1>(rank),
                  .groups = groups_,
                  .bias = false};
    const AxisPaddings more = output_padding_.on<0>(rank);
    for (int axis = dims.in.first_axis(); axis < kMostAxes; ++axis)
      dims.in[axis] = (from[axis] - 1) * dims.stride[axis] - 2 * dims.pad[axis] +
                      dims.dil[axis] * (dims.kernel[axis] - 1) + more[axis] + 1;
    if (rows_) {  // all rows that the input's contribute to, and those of the output behind them
      const int first = dims.in.first_axis();
      dims.pad[first] = 0;
      dims.in[first] = std::max((from[first] - 1) * dims.stride[first] + reach(), skipped() + rows_->count());
    }
    return dims;
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }
  static OpSpec bias(OpKind kind, const Lowering& lowering) {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = BroadcastDims{.shape = lowering.output_shape(0), .channels = true}};
  }

  std::int64_t channels_, groups_;
  bool bias_;
  Window window_;
  AxesKey output_padding_;
  std::optional<Units> rows_;  // the rows of a spatial shard; none: all
};

}  // namespace

LayerPtr make_conv_transpose(const LayerConfig& config) { return std::make_shared<ConvTranspose>(config); }

}  // namespace echelon::inline model
