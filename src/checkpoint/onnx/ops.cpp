// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/onnx/ops.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline checkpoint::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

// The numbers of the axes that images of this rank have.
template <std::int64_t kUnused>
Integers listed(const PerAxis<kUnused>& values, int rank) {
  Integers list;
  for (int axis = kMostAxes - rank; axis < kMostAxes; ++axis) list.push_back(values[axis]);
  return list;
}

// Before all axes, then behind them.
Integers both_ends(const AxisPaddings& pad, int rank) {
  Integers pads = listed(pad, rank);
  for (int axis = 0; axis < rank; ++axis) pads.push_back(pads[static_cast<std::size_t>(axis)]);
  return pads;
}

void write_form(Builder& to, const ConvDims& d, const Arguments& args) {
  const int rank = d.in.rank;
  to.write("Conv", {args["x"], args["w"], args["b"]}, {args["y"]},
           {{"kernel_shape", listed(d.kernel, rank)},
            {"strides", listed(d.stride, rank)},
            {"pads", both_ends(d.pad, rank)},
            {"dilations", listed(d.dil, rank)},
            {"group", d.groups}});
}

// The gradient of a convolution's input, which is the forward op of a transposed convolution.
void write_transposed(Builder& to, const ConvDims& d, const Arguments& args) {
  const int rank = d.in.rank;
  const SpatialExtents from = d.out();
  AxisPaddings more;
  for (int axis = d.in.first_axis(); axis < kMostAxes; ++axis)
    more[axis] =
        d.in[axis] - ((from[axis] - 1) * d.stride[axis] - 2 * d.pad[axis] + d.dil[axis] * (d.kernel[axis] - 1) + 1);
  to.write("ConvTranspose", {args["dy"], args["w"]}, {args["dx"]},
           {{"kernel_shape", listed(d.kernel, rank)},
            {"strides", listed(d.stride, rank)},
            {"pads", both_ends(d.pad, rank)},
            {"dilations", listed(d.dil, rank)},
            {"output_padding", listed(more, rank)},
            {"group", d.groups}});
}

void write_form(Builder& to, const UpsampleDims& d, const Arguments& args) {
  std::vector<float> scales = {1, 1};
  for (const std::int64_t factor : listed(d.factor, d.in.rank)) scales.push_back(static_cast<float>(factor));
  const std::string list = to.numbers(Shape{static_cast<std::int64_t>(scales.size())}, scales);
  to.write("Resize", {args["x"], "", list}, {args["y"]},
           {{"mode", d.linear ? "linear" : "nearest"},
            {"coordinate_transformation_mode", d.linear ? "half_pixel" : "asymmetric"},
            {"nearest_mode", "floor"}});
}

void write_form(Builder& to, const PoolDims& d, const Arguments& args) {
  ECHELON_CHECK(!d.relu && d.more_behind == 0, "a pool that was fused or split");
  const int rank = d.in.rank;
  std::vector<Attribute> attributes = {
      {"kernel_shape", listed(d.kernel, rank)}, {"strides", listed(d.stride, rank)}, {"pads", both_ends(d.pad, rank)}};
  if (d.mode != PoolMode::max)
    attributes.push_back({"count_include_pad", std::int64_t{d.mode == PoolMode::average_all}});
  to.write(d.mode == PoolMode::max ? "MaxPool" : "AveragePool", {args["x"]}, {args["y"]}, attributes);
}

// A sequence (N, T, F) is multiplied at each position, because Gemm takes no third axis.
void write_form(Builder& to, const DenseDims& d, const Arguments& args) {
  if (args.rank("x") == 2)
    return to.write("Gemm", {args["x"], args["w"], args["b"]}, {args["y"]}, {{"transB", std::int64_t{1}}});
  const std::string turned = to.add("Transpose", {args["w"]}, {{"perm", Integers{1, 0}}});
  if (!d.bias) return to.write("MatMul", {args["x"], turned}, {args["y"]});
  to.write("Add", {to.add("MatMul", {args["x"], turned}), args["b"]}, {args["y"]});
}

void write_form(Builder& to, const ActivationDims& d, const Arguments& args) {
  const auto a = static_cast<float>(d.a);
  switch (d.function) {
    case Activation::relu: return to.write("Relu", {args["x"]}, {args["y"]});
    case Activation::tanh: return to.write("Tanh", {args["x"]}, {args["y"]});
    case Activation::sigmoid: return to.write("Sigmoid", {args["x"]}, {args["y"]});
    case Activation::leaky_relu: return to.write("LeakyRelu", {args["x"]}, {args["y"]}, {{"alpha", a}});
    case Activation::elu: return to.write("Elu", {args["x"]}, {args["y"]}, {{"alpha", a}});
    case Activation::softplus: return to.write("Softplus", {args["x"]}, {args["y"]});
    case Activation::scale: return to.write("Mul", {args["x"], to.number(a)}, {args["y"]});
    case Activation::gelu: break;
  }
  // x/2 (1 + erf(x / sqrt 2))
  const std::string scaled = to.add("Mul", {args["x"], to.number(static_cast<float>(std::numbers::sqrt2 / 2))});
  const std::string part = to.add("Add", {to.add("Erf", {scaled}), to.number(1)});
  to.write("Mul", {to.add("Mul", {args["x"], to.number(0.5F)}), part}, {args["y"]});
}

void write_form(Builder& to, const NormDims& d, const Arguments& args) {
  ECHELON_CHECK(!d.relu, "a batch norm that was fused");
  to.write("BatchNormalization", {args["x"], args["gamma"], args["beta"], args["mean"], args["var"]}, {args["y"]},
           {{"epsilon", static_cast<float>(d.epsilon)}});
}

void write_form(Builder& to, const LrnDims& d, const Arguments& args) {
  if (d.size % 2 == 0)
    throw ConfigError(fmt::format(
        "size = {}: ONNX normalises over equal numbers of channels before and after; use an odd size", d.size));
  const std::vector<Attribute> attributes = {{"size", d.size},
                                             {"alpha", static_cast<float>(d.alpha)},
                                             {"beta", static_cast<float>(d.beta)},
                                             {"bias", static_cast<float>(d.k)}};
  if (args.rank("x") == 4) return to.write("LRN", {args["x"]}, {args["y"]}, attributes);
  // onnxruntime normalises images alone.
  const std::string image = to.add("Reshape", {args["x"], to.integers({0, d.C, d.H, d.W})});
  const Shape shape = args.shape("y");
  Integers back(shape.extents().begin(), shape.extents().end());
  back[0] = 0;
  to.write("Reshape", {to.add("LRN", {image}, attributes), to.integers(back)}, {args["y"]});
}

void write_form(Builder& to, const LayerNormDims& d, const Arguments& args) {
  to.write("LayerNormalization", {args["x"], args["gamma"], args["beta"]}, {args["y"]},
           {{"axis", std::int64_t{args.rank("x") == 3 ? 2 : 1}}, {"epsilon", static_cast<float>(d.epsilon)}});
}

// Joins sequences (N, T, F), which the op folds to N*T samples, along their features.
void write_form(Builder& to, const ConcatDims& d, Arguments& args) {
  static constexpr std::string_view kInputs[kMaxConcat] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6"};
  std::vector<std::string> inputs;
  for (int i = 0; i < d.inputs(); ++i) inputs.push_back(args[kInputs[i]]);
  const Shape first = args.shape("x0");
  const bool sequence = first.rank() == 3;
  Integers joined(first.extents().begin(), first.extents().end());
  joined[sequence ? 2 : 1] = d.C();
  args.set_shape("y", Shape(joined));
  to.write("Concat", inputs, {args["y"]}, {{"axis", std::int64_t{sequence ? 2 : 1}}});
}

void write_form(Builder& to, const ElementwiseDims& d, const Arguments& args) {
  ECHELON_CHECK(!d.relu, "an add that was fused");
  to.write("Add", {args["a"], args["b"]}, {args["y"]});
}

void write_form(Builder& to, const BroadcastDims& d, const Arguments& args) {
  std::string added = args["w"];
  Integers axes;
  for (int axis = 2; axis < d.shape.rank() && d.channels; ++axis) axes.push_back(axis - 1);
  if (!axes.empty()) added = to.add("Unsqueeze", {added, to.integers(axes)});
  to.write("Add", {args["x"], added}, {args["y"]});
}

void write_form(Builder& to, const EmbeddingDims&, const Arguments& args) {
  to.write("Gather", {args["w"], args["ids"]}, {args["y"]}, {{"axis", std::int64_t{0}}});
}

template <class FamilyDims>
concept HasForm = requires(Builder& to, const FamilyDims& dims, Arguments& args) {
  write_form(to, dims, args);
};

}  // namespace

Operand& Arguments::find(std::string_view name) const {
  const int index = argument_index(infos_, name);
  ECHELON_CHECK_GE(index, 0, "no argument '{}'", name);
  return *operands_[static_cast<std::size_t>(index)];
}

std::string Arguments::operator[](std::string_view name) const {
  return argument_index(infos_, name) < 0 ? std::string() : find(name).value;
}

void write_op(Builder& to, const OpSpec& spec, Arguments args) {
  if (spec.kind == OpKind::conv_backward_data) return write_transposed(to, std::get<ConvDims>(spec.dims), args);
  std::visit(
      [&]<class FamilyDims>(const FamilyDims& dims) {
        if constexpr (HasForm<FamilyDims>)
          write_form(to, dims, args);
        else
          throw ConfigError(fmt::format("ONNX has no operator for {}", name_of(spec.kind)));
      },
      spec.dims);
}

}  // namespace echelon::inline checkpoint::onnx
