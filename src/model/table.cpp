// SPDX-License-Identifier: Apache-2.0
// The model's table and costs: lowers every node for one sample without a device and counts the FLOPs of its ops.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "model/build.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

// Adds up the FLOPs of one node's ops; tensors have no content.
class CountingLowering final : public Lowering {
 public:
  CountingLowering(const Graph& graph, const Node& node, DType dtype) : graph_(graph), node_(node), dtype_(dtype) {}

  std::int64_t batch() const override { return 1; }
  bool training() const override { return true; }
  DType dtype() const override { return dtype_; }
  bool travels_beside_ops() const override { return false; }
  int inputs() const override { return static_cast<int>(node_.inputs.size()); }
  Shape input_shape(int i) const override { return shape_of(node_.inputs[static_cast<std::size_t>(i)]); }
  Shape output_shape(int i) const override { return shape_of(node_.outputs[static_cast<std::size_t>(i)]); }
  TensorRef input(int) override { return {}; }
  TensorRef output(int) override { return {}; }
  bool wants_grad_input(int i) const override {
    return graph_.values()[static_cast<std::size_t>(node_.inputs[static_cast<std::size_t>(i)])].wants_gradient;
  }
  TensorRef grad_input(int) override { return {}; }
  TensorRef grad_output(int) override { return {}; }
  bool has_grad_output(int i) const override { return i == 0; }
  TensorRef parameter(int) override { return {}; }
  TensorRef grad_parameter(int) override { return {}; }
  bool frozen(int j) const override {
    return graph_.parameters()[node_.parameters[static_cast<std::size_t>(j)]].frozen;
  }
  TensorRef row_marks(int) override { return {}; }
  TensorRef kept(std::string_view, const Shape&, DType) override { return {}; }
  TensorRef state(std::string_view, const Shape&) override { return {}; }
  void alias(int, int) override {}
  void share(int, int) override {}
  void pass_gradient(int, int) override {}
  void give_gradient(int, TensorRef, bool) override {}
  TensorRef zeros(std::string_view, const Shape&, bool) override { return {}; }
  void sum_over_replicas(TensorRef) override {}
  void count_cells(std::int64_t) override {}
  void transfer(int, TensorRef, TensorRef, bool) override {}
  void op(const OpSpec& spec, const std::vector<TensorRef>&, ScaleSource, int) override { flops_ += flops(spec); }

  double take_flops() {
    const double taken = flops_;
    flops_ = 0;
    return taken;
  }

 private:
  Shape shape_of(ValueId id) const { return graph_.values()[static_cast<std::size_t>(id)].shape.prepended(1); }

  const Graph& graph_;
  const Node& node_;
  DType dtype_;
  double flops_ = 0;
};

struct NodeCosts {
  std::int64_t parameters = 0;
  double forward_flops = 0, backward_flops = 0, bytes = 0;
};

NodeCosts node_costs(const Graph& graph, const Node& node, DType dtype) {
  NodeCosts costs;
  const bool owner = graph.nodes()[static_cast<std::size_t>(node.owner)].name == node.name;
  for (int parameter : node.parameters)
    if (owner && graph.declares(node, parameter) && graph.parameters()[parameter].kind == ParameterKind::weight)
      costs.parameters += graph.parameters()[parameter].elems();
  CountingLowering lowering(graph, node, dtype);
  node.layer->forward(lowering);
  costs.forward_flops = lowering.take_flops();
  node.layer->backward(lowering);
  costs.backward_flops = lowering.take_flops();
  for (ValueId id : node.outputs)
    costs.bytes += static_cast<double>(graph.values()[static_cast<std::size_t>(id)].shape.elems()) *
                   static_cast<double>(size_of(dtype));
  return costs;
}

}  // namespace

ModelCosts model_costs(const Graph& graph, DType dtype) {
  ModelCosts total;
  total.activation_bytes = static_cast<double>(graph.values().front().shape.elems()) *
                           static_cast<double>(size_of(dtype));  // the sample itself
  for (const Node& node : graph.nodes()) {
    const NodeCosts costs = node_costs(graph, node, dtype);
    total.parameters += costs.parameters;
    total.forward_flops += costs.forward_flops;
    total.backward_flops += costs.backward_flops;
    total.activation_bytes += costs.bytes;
  }
  return total;
}

std::vector<double> node_flops(const Graph& graph, DType dtype) {
  std::vector<double> flops;
  for (const Node& node : graph.nodes()) {
    const NodeCosts costs = node_costs(graph, node, dtype);
    flops.push_back(costs.forward_flops + costs.backward_flops);
  }
  return flops;
}

std::string frozen_text(const ParameterSet& parameters) {
  std::vector<std::string> layers;
  std::int64_t weights = 0;
  for (const Parameter& parameter : parameters.frozen()) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const bool whole = std::none_of(parameters.all().begin(), parameters.all().end(),
                                    [&](const Parameter& p) { return p.name.starts_with(layer + "."); });
    const std::string& name = whole ? layer : parameter.name;
    if (layers.empty() || layers.back() != name) layers.push_back(name);
    if (parameter.kind == ParameterKind::weight) weights += parameter.elems();
  }
  if (layers.empty()) return {};
  return fmt::format("{}: {} of {} parameters", fmt::join(layers, ", "), count_text(weights),
                     count_text(parameters.weight_elems()));
}

std::string model_table(const Graph& graph, DType dtype) {
  Table table({"layer", "kind", "attributes", "output", "parameters", "forward FLOPs", "bytes"});
  const Value& samples = graph.values().front();
  table.row({samples.name, "input", "", samples.shape.text(), "0", "0",
             bytes_text(static_cast<double>(samples.shape.elems()) * static_cast<double>(size_of(dtype)))});
  for (const Node& node : graph.nodes()) {
    const NodeCosts costs = node_costs(graph, node, dtype);
    std::vector<Shape> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(graph.values()[static_cast<std::size_t>(id)].shape);
    table.row({node.name, std::string(node.layer->kind()), node.layer->attributes(inputs),
               graph.values()[static_cast<std::size_t>(node.outputs.front())].shape.text(),
               count_text(costs.parameters), short_count(costs.forward_flops), bytes_text(costs.bytes)});
  }
  const ModelCosts total = model_costs(graph, dtype);
  table.row({"total", "", "", "", count_text(total.parameters), short_count(total.forward_flops),
             bytes_text(total.activation_bytes)});
  return table.text();
}

}  // namespace echelon::inline model
