// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/onnx/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.hpp"
#include "base/error.hpp"
#include "checkpoint/onnx/builder.hpp"
#include "checkpoint/onnx/ops.hpp"
#include "model/lowering.hpp"

namespace echelon::inline checkpoint::onnx {
namespace {

std::vector<std::int64_t> with_batch(const Shape& sample, std::int64_t batch) {
  std::vector<std::int64_t> extents = {batch};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return extents;
}

template <class T>
std::string content_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Lowers each layer of an evaluation to ONNX operations; N is 1 in its shapes.
class OnnxLowering final : public Lowering {
 public:
  OnnxLowering(const Graph& graph, const ReadParameter& read, const Options& options)
      : graph_(graph), read_(read), options_(options), values_(graph.values().size(), -1) {
    if (options.int8) matrices_ = matrices_of(graph);
  }

  File run() {
    for (const Value& value : graph_.values())
      if (value.producer < 0) to_.name(value.name);
    to_.name("outputs");
    add_inputs();
    for (node_ = 0; node_ < graph_.loss(); ++node_) lower_node();
    node_ = graph_.loss();
    add_outputs();
    remove_unused(to_.file());
    return std::move(to_.file());
  }

  std::int64_t batch() const override { return 1; }
  bool training() const override { return false; }
  DType dtype() const override { return DType::f32; }
  bool travels_beside_ops() const override { return false; }
  int inputs() const override { return static_cast<int>(node().inputs.size()); }
  Shape input_shape(int i) const override { return shape_of(input_value(i)); }
  Shape output_shape(int i) const override { return shape_of(output_value(i)); }
  TensorRef input(int i) override { return {tensor_of(input_value(i))}; }
  TensorRef output(int i) override { return {tensor_of(output_value(i))}; }
  bool wants_grad_input(int) const override { return false; }
  TensorRef grad_input(int) override { return trained(); }
  TensorRef grad_output(int) override { return trained(); }
  bool has_grad_output(int) const override { return false; }
  TensorRef grad_parameter(int) override { return trained(); }
  bool frozen(int) const override { return false; }
  TensorRef row_marks(int) override { return trained(); }
  void pass_gradient(int, int) override { trained(); }
  void give_gradient(int, TensorRef, bool) override { trained(); }
  TensorRef zeros(std::string_view, const Shape&, bool) override { return trained(); }
  void sum_over_replicas(TensorRef) override { trained(); }
  void count_cells(std::int64_t) override { trained(); }
  void transfer(int, TensorRef, TensorRef, bool) override { trained(); }
  void share(int output, int input) override { alias(output, input); }

  TensorRef parameter(int j) override;
  TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) override;
  TensorRef state(std::string_view tag, const Shape& shape) override;
  void alias(int output, int input) override;
  void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale, int pair) override;

 private:
  const Node& node() const { return graph_.nodes()[static_cast<std::size_t>(node_)]; }
  const Value& value_of(ValueId id) const { return graph_.values()[static_cast<std::size_t>(id)]; }
  ValueId input_value(int i) const { return node().inputs[static_cast<std::size_t>(i)]; }
  ValueId output_value(int i) const { return node().outputs[static_cast<std::size_t>(i)]; }
  Shape shape_of(ValueId id) const { return value_of(id).shape.prepended(1); }
  Operand& at(int tensor) { return operands_[static_cast<std::size_t>(tensor)]; }

  static TensorRef trained() {
    ECHELON_CHECK(false, "the evaluation of a whole model has neither gradients nor transfers");
    return {};
  }

  int add_operand(std::string value, const Shape& shape) {
    operands_.push_back({std::move(value), shape});
    return static_cast<int>(operands_.size()) - 1;
  }
  int tensor_of(ValueId id) {
    int& tensor = values_[static_cast<std::size_t>(id)];
    if (tensor < 0) tensor = add_operand(to_.name(value_of(id).name), shape_of(id));
    return tensor;
  }

  void lower_node();
  void add_inputs();
  std::string normalised(const std::string& samples, const Value& value);
  void add_outputs();
  std::string weights(const Parameter& parameter);

  const Graph& graph_;
  const ReadParameter& read_;
  const Options& options_;
  std::vector<std::string> matrices_;  // names of the parameters that are quantised
  Builder to_;
  int node_ = 0;
  std::vector<Operand> operands_;
  std::vector<int> values_;  // [ValueId] index of its operand; -1: none yet
  std::map<int, int> parameters_;
  std::map<std::pair<int, std::string>, int> kept_;
  struct State {
    std::string name;
    int before, after = -1;  // operands
  };
  std::vector<State> states_;
};

void OnnxLowering::lower_node() {
  to_.set_part(node().name);
  try {
    node().layer->forward(*this);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}{}layer '{}' ({}): {}", node().where, node().where.empty() ? "" : ": ",
                                  node().name, node().layer->kind(), error.what()));
  }
}

// Adds all inputs; inputs that no operation reads are removed at the end.
void OnnxLowering::add_inputs() {
  for (std::size_t id = 0; id < graph_.values().size(); ++id) {
    const Value& value = graph_.values()[id];
    if (value.producer >= 0 || value.name == "labels" || value.name == "weights" || value.name == "ids") continue;
    const bool real = value.type == ValueType::real;
    Port port{value.name, real ? Element::f32 : Element::i32, with_batch(value.shape, Port::kBatch)};
    if (value.name == "samples")
      port.meaning = real ? "values of the data set times its scale (by default 1/255 for pixels)" : "tokens";
    if (value.name == "lengths")
      port.meaning = "number of positions in use in each sample, at least 1; later positions hold zeros";
    to_.file().inputs.push_back(port);
    const std::string ready = value.name == "samples" && real ? normalised(value.name, value) : value.name;
    values_[id] = add_operand(ready, shape_of(static_cast<ValueId>(id)));
  }
}

// Like data/normalise.hpp: value * factor + offset.
std::string OnnxLowering::normalised(const std::string& samples, const Value& value) {
  const auto& [mean, deviation] = options_.normalisation;
  const bool changes = std::any_of(mean.begin(), mean.end(), [](double m) { return m != 0; }) ||
                       std::any_of(deviation.begin(), deviation.end(), [](double s) { return s != 1; });
  if (!changes) return samples;
  to_.set_part(samples);
  std::vector<float> factor, offset;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    factor.push_back(static_cast<float>(1 / deviation[c]));
    offset.push_back(static_cast<float>(-mean[c] / deviation[c]));
  }
  const auto count = static_cast<std::int64_t>(mean.size());
  const bool sequence = value.shape.rank() == 2 && value.shape[1] == count;  // else a series (C, W)
  std::vector<std::int64_t> each = {count};
  if (!sequence) each.resize(static_cast<std::size_t>(value.shape.rank()), 1);
  const std::string scaled = to_.add("Mul", {samples, to_.numbers(Shape(each), factor)});
  const std::string moved = to_.add("Add", {scaled, to_.numbers(Shape(each), offset)});
  if (!sequence || graph_.find("lengths") < 0) return moved;
  const std::string used = positions_in_use(to_, "lengths", value.shape[0]);
  return to_.add("Where", {to_.add("Unsqueeze", {used, to_.integers({2})}), moved, to_.number(0)});
}

// If the model has classes, the first input of the loss is the logits.
void OnnxLowering::add_outputs() {
  const Value& last = value_of(input_value(0));
  const std::string& value = at(tensor_of(input_value(0))).value;
  if (node().layer->reads_logits())
    to_.write("Softmax", {value}, {"outputs"}, {{"axis", std::int64_t{node().layer->has_class_planes() ? 1 : -1}}});
  else
    to_.write("Identity", {value}, {"outputs"});
  to_.file().outputs.push_back({"outputs", Element::f32, with_batch(last.shape, Port::kBatch)});
  for (const State& state : states_) {
    const std::vector<std::int64_t> shape = {Port::kBatch, at(state.before).shape[1]};
    to_.file().inputs.push_back({state.name, Element::f32, shape, "zeros, or the final state of the batch before"});
    const std::string next = to_.name(state.name + "_next");
    to_.write("Identity", {at(state.after).value}, {next});
    to_.file().outputs.push_back({next, Element::f32, shape});
  }
}

std::string OnnxLowering::weights(const Parameter& parameter) {
  const std::vector<float> values = read_(parameter);
  std::string called = to_.name(parameter.name);
  if (std::find(matrices_.begin(), matrices_.end(), parameter.name) == matrices_.end()) {
    to_.constant(called, Element::f32, parameter.shape, content_of(values));
    return called;
  }
  const QuantisedRows rows = quantise_rows(values, parameter.shape[0]);
  const std::string scale = to_.name(called + ".scale");
  to_.constant(called, Element::i8, parameter.shape, content_of(rows.values));
  to_.constant(scale, Element::f32, Shape{parameter.shape[0]}, content_of(rows.scales));
  return to_.add("DequantizeLinear", {called, scale}, {{"axis", std::int64_t{0}}});
}

TensorRef OnnxLowering::parameter(int j) {
  const int index = node().parameters[static_cast<std::size_t>(j)];
  const auto [found, fresh] = parameters_.try_emplace(index, -1);
  const Parameter& parameter = graph_.parameters()[index];
  if (fresh) found->second = add_operand(weights(parameter), parameter.shape);
  return {found->second};
}

TensorRef OnnxLowering::kept(std::string_view tag, const Shape& shape, DType) {
  const auto [found, fresh] = kept_.try_emplace({node_, std::string(tag)}, -1);
  if (fresh) found->second = add_operand(to_.name(fmt::format("{}/{}", node().name, tag)), shape);
  return {found->second};
}

TensorRef OnnxLowering::state(std::string_view tag, const Shape& shape) {
  const TensorRef state = kept(fmt::format("state {}", tag), shape, DType::f32);
  const auto known = std::find_if(states_.begin(), states_.end(), [&](const State& s) { return s.before == state.id; });
  if (known == states_.end()) {
    at(state.id).value = to_.name(fmt::format("{}.{}", node().name, tag));
    states_.push_back({at(state.id).value, state.id});
  }
  return state;
}

void OnnxLowering::alias(int output, int input) {
  const int from = tensor_of(input_value(input));
  const Value& to = value_of(output_value(output));
  if (at(from).shape == shape_of(output_value(output))) {
    values_[static_cast<std::size_t>(output_value(output))] = from;
    return;
  }
  const int reshaped = tensor_of(output_value(output));
  to_.write("Reshape", {at(from).value, to_.integers(with_batch(to.shape, 0))}, {at(reshaped).value});
}

void OnnxLowering::op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource, int) {
  if (spec.kind == OpKind::reorder) {  // a state: to the layer's initial state, or from its final state
    const auto state =
        std::find_if(states_.begin(), states_.end(), [&](const State& s) { return s.before == args[1].id; });
    if (state != states_.end())
      state->after = args[0].id;
    else
      at(args[1].id).value = at(args[0].id).value;
    return;
  }
  std::vector<Operand*> operands;
  for (const TensorRef arg : args) operands.push_back(&at(arg.id));
  write_op(to_, spec, Arguments(spec, std::move(operands)));
}

}  // namespace

File make_file(const Graph& graph, const ReadParameter& read, const Options& options) {
  return OnnxLowering(graph, read, options).run();
}

}  // namespace echelon::inline checkpoint::onnx
