// SPDX-License-Identifier: Apache-2.0
// A model as a graph of layers on the shapes of one sample: nodes in topological order, named values, parameters, one
// loss at the end.
//
//   Graph  ->  rewrites (src/parallel: splits; fusion)  ->  Program (ops, layouts, memory for one rank)
//
// A rewrite takes a Graph and returns another one: it may replace nodes, cut values with send and receive nodes, or
// make parameters slices of whole tensors. Nothing here depends on N, devices or ranks. A Graph is a value: copies
// share layers, which are immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"
#include "device/parameter.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

using ValueId = int;

// The kind of an element of a value: a real number of the model's dtype, or an index (class label, token).
enum class ValueType : std::uint8_t { real, index };

struct Value {
  std::string name;  // "conv1" (a node's first output has the node's name), "conv1.1", or an input's name
  Shape shape;       // per sample, without N
  ValueType type = ValueType::real;
  int producer = -1;            // node, or -1 for an input of the graph
  bool wants_gradient = false;  // a layer upstream has parameters
  bool along_samples =
      false;  // (T, ..): position t belongs to position t of "samples", so that "lengths" counts its positions
};

struct Node {
  std::string name;
  LayerPtr layer;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<int> parameters;  // indices into Graph::parameters(), in the order of Layer::parameters
  std::string where;            // "lenet.toml:12", or "zoo lenet"
  std::string of;               // the layer whose time chunk this is (parallel/time_chunk_pipeline.hpp); else the name
  int owner = -1;  // index of the node that declares the parameters: the first time chunk of the layer; else this node
  int stage = -1;  // stage of the pipeline that the config sets; -1: chosen by cost
};

// A rule of model.init for the initial values of a layer.
struct DrawnBy {
  std::string init;  // "uniform" | "he" | "orthogonal"
  double range = 0;  // uniform: in [-range, range)
};
// The initial values of a parameter of this whole shape. He et al. 2015: normal with the root of 2 / inputs of a unit,
// where the first axis is that of units. Biases are 0 unless drawn uniformly.
Init init_by(const DrawnBy& rule, const Shape& whole);

class Graph {
 public:
  // Adds an input of the whole model: "samples" (C, H, W), (T, F) or tokens (T); "labels" (..); "weights" of the
  // labels' shape (real; 0 leaves a label out); for pairs of sequences "target" (U), tokens; for sequences of different
  // lengths "lengths" (), index; for layers with wants_ids "ids" (), index: the low 32 bits of the sample's number in
  // the data set. The name must be new.
  ValueId input(std::string name, const Shape& shape, ValueType type = ValueType::real);
  // Adds a node behind all others; its inputs must exist. Infers shapes, declares parameters, returns the values of the
  // outputs. ConfigError, beginning with `where` and the node's name, if the name is taken, the number of inputs is not
  // Layer::arity, indices and real numbers are mixed up, or Layer::infer refuses the shapes. Nodes with the same `of`
  // share one set of parameters, states and random draws under that layer's name.
  std::vector<ValueId> add(const std::string& name, const LayerPtr& layer, std::vector<ValueId> inputs,
                           const std::string& where = {}, const std::string& of = {});

  // Freezes the parameters of later nodes if one of these patterns (fnmatch) matches their own name or that of their
  // layer.
  void freeze(std::vector<std::string> patterns) { frozen_ = std::move(patterns); }
  // Layers, by name, whose parameters begin otherwise than ParameterDecl::init says; for later nodes.
  void draw_by(std::map<std::string, DrawnBy> rules) { drawn_by_ = std::move(rules); }
  // A graph without nodes that freezes the same parameters and draws them by the same rules; a rewrite starts from it.
  Graph blank() const;

  // Sets Node::stage of the node added last.
  void set_stage(int stage) { nodes_.back().stage = stage; }

  // The node (by index) where the backward pass starts and whose sums Program::losses returns; -1: none, as in all
  // stages of a pipeline but the last.
  void set_loss(int node) { loss_ = node; }
  int loss() const { return loss_; }

  // Whether the node's layer declares this one of its parameters, and does not share that of another layer.
  bool declares(const Node& node, int parameter) const {
    const std::string& name = parameters_[parameter].name;
    return name.rfind('.') == node.of.size() && name.starts_with(node.of);
  }

  // Whether LossSums::correct has a meaning: mse has no right or wrong predictions.
  bool counts_correct() const;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const ParameterSet& parameters() const { return parameters_; }
  ValueId find(std::string_view value_name) const;  // -1 if there is none
  std::vector<std::string> value_names() const;     // by ValueId

 private:
  std::vector<ValueId> add_node(Node node);
  std::vector<int> declare_all(const Node& node, const std::vector<Shape>& inputs);
  int declare(const Node& node, const ParameterDecl& decl, const ParameterSlice& slice);
  int shared(const ParameterDecl& decl) const;
  bool is_added_input(ValueId id) const;
  void check_types(const Layer& layer, const std::vector<ValueId>& inputs) const;
  bool freezes(const std::string& layer, const std::string& parameter) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  ParameterSet parameters_;
  std::vector<std::string> frozen_;  // patterns
  std::map<std::string, DrawnBy> drawn_by_;
  int loss_ = -1;
};

}  // namespace echelon::inline model
