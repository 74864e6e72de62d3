// SPDX-License-Identifier: Apache-2.0
#include "model/graph.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

namespace echelon::inline model {
namespace {

std::string in_place(const std::string& where, const std::string& name, std::string_view kind, const char* what) {
  const std::string node = fmt::format("layer '{}' ({}): {}", name, kind, what);
  return where.empty() ? node : where + ": " + node;
}

ParameterSlice whole_tensor(const Shape& shape) {
  return {.whole = shape, .offset = Shape(std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0))};
}

}  // namespace

Init init_by(const DrawnBy& rule, const Shape& whole) {
  if (rule.init == "uniform") return {Init::Kind::uniform, rule.range};
  if (whole.rank() < 2) return {Init::Kind::constant, 0};
  if (rule.init == "he") return {Init::Kind::normal, std::sqrt(2.0 / static_cast<double>(whole.row_elems()))};
  ECHELON_CHECK(rule.init == "orthogonal", "no rule '{}' for initial values", rule.init);
  return {Init::Kind::orthogonal, 1};
}

Graph Graph::blank() const {
  Graph graph;
  graph.freeze(frozen_);
  graph.draw_by(drawn_by_);
  return graph;
}

ValueId Graph::input(std::string name, const Shape& shape, ValueType type) {
  ECHELON_CHECK_EQ(find(name), -1, "input '{}' is declared twice", name);
  const bool along_samples = name == "samples" && shape.rank() >= 1;
  values_.push_back({std::move(name), shape, type, -1, false, along_samples});
  return static_cast<ValueId>(values_.size()) - 1;
}

std::vector<ValueId> Graph::add(const std::string& name, const LayerPtr& layer, std::vector<ValueId> inputs,
                                const std::string& where, const std::string& of) {
  try {
    return add_node({.name = name,
                     .layer = layer,
                     .inputs = std::move(inputs),
                     .outputs = {},
                     .parameters = {},
                     .where = where,
                     .of = of.empty() ? name : of});
  } catch (const ConfigError& error) {
    throw ConfigError(in_place(where, name, layer->kind(), error.what()));
  }
}

std::vector<ValueId> Graph::add_node(Node node) {
  const std::string& name = node.name;
  const LayerPtr& layer = node.layer;
  const std::vector<ValueId>& inputs = node.inputs;
  if (find(name) >= 0) throw ConfigError("another layer or input already has this name; choose a different one");
  const auto given = std::count_if(inputs.begin(), inputs.end(), [&](ValueId id) { return !is_added_input(id); });
  if (layer->arity() >= 0 && given != layer->arity())
    throw ConfigError(fmt::format("the layer takes {}, but {} given", counted(layer->arity(), "input"),
                                  given == 1 ? "1 is" : fmt::format("{} are", given)));
  if (inputs.empty() && layer->arity() != 0) throw ConfigError("the layer takes at least one input, but none is given");

  std::vector<Shape> shapes;
  for (ValueId id : inputs) {
    ECHELON_CHECK(id >= 0 && id < static_cast<ValueId>(values_.size()), "value {} does not exist", id);
    shapes.push_back(values_[static_cast<std::size_t>(id)].shape);
  }
  check_types(*layer, inputs);
  const std::vector<Shape> out_shapes = layer->infer(shapes);

  const auto first = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) { return other.of == node.of; });
  node.owner = static_cast<int>(first - nodes_.begin());
  node.parameters = declare_all(node, shapes);
  bool learns = layer->learns_elsewhere() || std::any_of(node.parameters.begin(), node.parameters.end(),
                                                         [&](int p) { return !parameters_[p].frozen; });
  for (ValueId id : node.inputs) learns = learns || values_[static_cast<std::size_t>(id)].wants_gradient;
  // Output 0 is a sequence with the positions of input 0.
  const Value x = node.inputs.empty() ? Value{} : values_[static_cast<std::size_t>(node.inputs.front())];
  for (std::size_t i = 0; i < out_shapes.size(); ++i) {
    const bool along = i == 0 && x.along_samples && out_shapes[i].rank() == 2 && out_shapes[i][0] == x.shape[0];
    values_.push_back({i == 0 ? name : fmt::format("{}.{}", name, i), out_shapes[i],
                       layer->gives_indices() ? ValueType::index : ValueType::real, static_cast<int>(nodes_.size()),
                       learns, along});
    node.outputs.push_back(static_cast<ValueId>(values_.size()) - 1);
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

std::vector<int> Graph::declare_all(const Node& node, const std::vector<Shape>& inputs) {
  const std::vector<ParameterDecl> decls = node.layer->parameters(inputs);
  std::vector<ParameterSlice> slices = layer_split(*node.layer).slices(inputs);
  if (slices.empty())
    for (const ParameterDecl& decl : decls) slices.push_back(whole_tensor(decl.shape));
  ECHELON_CHECK_EQ(slices.size(), decls.size(), "each parameter of '{}' must have one slice", node.name);
  std::vector<int> indices;
  for (std::size_t i = 0; i < decls.size(); ++i) indices.push_back(declare(node, decls[i], slices[i]));
  return indices;
}

// The index of a parameter: a new one, or for a later time chunk that of Node::owner.
int Graph::declare(const Node& node, const ParameterDecl& decl, const ParameterSlice& slice) {
  if (!decl.of.empty()) return shared(decl);
  Parameter parameter;
  parameter.name = node.of + "." + decl.suffix;
  parameter.shape = decl.shape;
  parameter.global_shape = slice.whole;
  parameter.offset = slice.offset;
  parameter.folded = slice.folded;
  parameter.kind = decl.kind;
  parameter.decays = decl.decays;
  parameter.momentum = decl.momentum;
  const auto rule = drawn_by_.find(node.of);
  const bool ruled = rule != drawn_by_.end() && decl.kind == ParameterKind::weight;
  parameter.init = ruled ? init_by(rule->second, slice.whole.folded(slice.folded)) : decl.init;
  parameter.frozen = freezes(node.of, parameter.name);
  parameter.sparse = decl.sparse && !parameter.frozen;
  parameter.alone = slice.alone;
  if (node.owner == static_cast<int>(nodes_.size())) return parameters_.add(std::move(parameter));
  const int owned = parameters_.find(parameter.name);
  ECHELON_CHECK(owned >= 0 && parameters_[owned].shape == parameter.shape,
                "parameter '{}' of a time chunk differs from that of the first chunk of '{}'", parameter.name, node.of);
  return owned;
}

// The index of a parameter that another layer has declared.
int Graph::shared(const ParameterDecl& decl) const {
  std::vector<std::string> tables;
  for (const Node& node : nodes_)
    if (node.layer->kind() == "embedding") tables.push_back(node.of);
  if (std::find(tables.begin(), tables.end(), decl.of) == tables.end())
    throw ConfigError(tables.empty() ? fmt::format("weights_of = \"{}\": no embedding precedes the layer", decl.of)
                                     : unknown_name("weights_of", decl.of, tables));
  const std::string name = decl.of + "." + decl.suffix;
  const int trained = parameters_.find(name);
  const auto& frozen = parameters_.frozen();
  const auto found = std::find_if(frozen.begin(), frozen.end(), [&](const Parameter& p) { return p.name == name; });
  const int index = trained >= 0 ? trained : ParameterSet::kFirstFrozen + static_cast<int>(found - frozen.begin());
  const Parameter& table = parameters_[index];
  if (table.shape != decl.shape)
    throw ConfigError(
        fmt::format("weights_of = \"{}\": its table is {} (tokens, features), but this layer's weights are "
                    "{} (units, inputs); set units = {} and an input of {} features",
                    decl.of, table.shape.text(), decl.shape.text(), table.shape[0], table.shape[1]));
  if (table.sparse)
    throw ConfigError(
        fmt::format("weights_of = \"{}\": the gradient of shared weights has all rows; leave sparse out "
                    "of the embedding",
                    decl.of));
  return index;
}

bool Graph::freezes(const std::string& layer, const std::string& parameter) const {
  return std::any_of(frozen_.begin(), frozen_.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), layer.c_str(), 0) == 0 || fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0;
  });
}

// Whether Layer::wants_ids or wants_lengths added this input, in addition to the inputs that the config names.
bool Graph::is_added_input(ValueId id) const {
  const Value& value = values_[static_cast<std::size_t>(id)];
  return value.producer < 0 && (value.name == "ids" || value.name == "lengths");
}

void Graph::check_types(const Layer& layer, const std::vector<ValueId>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_added_input(inputs[i])) continue;
    const Value& value = values_[static_cast<std::size_t>(inputs[i])];
    const bool indices = layer.reads_indices(static_cast<int>(i));
    if (indices && value.type == ValueType::real)
      throw ConfigError(fmt::format("the layer takes tokens, but '{}' holds real numbers", value.name));
    if (!indices && value.type == ValueType::index)
      throw ConfigError(fmt::format(
          "the layer takes real numbers, but '{}' holds tokens; put an embedding layer before it", value.name));
  }
}

ValueId Graph::find(std::string_view value_name) const {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i].name == value_name) return static_cast<ValueId>(i);
  return -1;
}

bool Graph::counts_correct() const { return nodes_[static_cast<std::size_t>(loss_)].layer->counts_correct(); }

std::vector<std::string> Graph::value_names() const {
  std::vector<std::string> names;
  for (const Value& value : values_) names.push_back(value.name);
  return names;
}

}  // namespace echelon::inline model
