// SPDX-License-Identifier: Apache-2.0
// Transposed convolution over 1 to 3 spatial axes, the gradient of a convolution's input as a layer (Zeiler et al.
// 2010): (C, H, W) -> (K, P, Q), where along each axis P = (H - 1) stride - 2 padding + dilation (R - 1) +
// output_padding + 1. Weights are (C, K/groups, kernel), biases (K).
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/weighted.hpp"
#include "model/layers/window.hpp"

namespace echelon::inline model {
namespace {

class ConvTranspose final : public Layer {
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
    return {with_axes(1, channels_, all.in, rank).without_front()};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterDecl> decls = weight_and_bias(dims(inputs[0].prepended(1)).w(), bias_, {});
    if (bias_) decls[1].shape = {channels_};
    return decls;
  }

  void forward(Lowering& lowering) const override {
    const TensorRef y = lowering.output(0);
    const TensorRef sum = bias_ ? lowering.kept("sum", lowering.output_shape(0), lowering.dtype()) : y;
    lowering.op(spec(OpKind::conv_backward_data, lowering), {lowering.input(0), lowering.parameter(0), sum},
                ScaleSource::one, 0);
    if (bias_) lowering.op(bias(OpKind::broadcast_add, lowering), {sum, lowering.parameter(1), y});
  }

  void backward(Lowering& lowering) const override {
    const TensorRef x = lowering.input(0), dy = lowering.grad_output(0);
    lowering.op(spec(OpKind::conv_backward_weights, lowering), {dy, x, lowering.grad_parameter(0)}, ScaleSource::one,
                0);
    if (bias_) lowering.op(bias(OpKind::sum_samples, lowering), {dy, lowering.grad_parameter(1)});
    if (lowering.wants_grad_input(0))
      lowering.op(spec(OpKind::conv_forward, lowering), {dy, lowering.parameter(0), lowering.grad_input(0)},
                  ScaleSource::one, 0);
  }

 private:
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
};

}  // namespace

LayerPtr make_conv_transpose(const LayerConfig& config) { return std::make_shared<ConvTranspose>(config); }

}  // namespace echelon::inline model
