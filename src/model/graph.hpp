// A model as a graph of layers on global shapes: nodes in topological order, named values, parameters, one loss at the
// end.
//
//   Graph  ->  rewrites (src/parallel: splits; fusion)  ->  Program (ops, layouts, memory for one rank)
//
// A rewrite takes a Graph and returns a Graph: it may replace nodes, cut values with send/receive nodes, or give
// parameters a slice. Nothing here depends on N, devices or ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"
#include "device/parameter.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

using ValueId = int;

// What one element of a value is: a real number of the model's dtype, or an index (class label, token).
enum class ValueType : std::uint8_t { real, index };

struct Value {
  std::string name;  // "conv1" (a node's first output has the node's name), "conv1.1", or an input's name
  Shape shape;       // of one sample, without N
  ValueType type = ValueType::real;
  int producer = -1;            // node, or -1 for an input of the graph
  bool wants_gradient = false;  // something upstream learns
  bool along_samples = false;   // (T, ..): place t is of the samples' place t, so that "lengths" holds for it
};

struct Node {
  std::string name;
  LayerPtr layer;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<int> parameters;  // indices into Graph::parameters(), in the order of Layer::parameters
  std::string where;            // "lenet.toml:12", or "zoo lenet"
  std::string of;               // the layer of which this is a chunk of time (parallel/staircase.hpp); else the name
  int owner = -1;               // the first of its chunks, which declares their parameters; else the node itself
  int stage = -1;               // of a pipeline, where the config says; -1: chosen by cost
};

class Graph {
 public:
  // Inputs of the whole model: "samples", "labels", "weights" (one real a label; 0 leaves it out), where the data has
  // them "target" (a second text) and "lengths" (one index a sample), and, where a layer wants them, "ids" (one index a
  // sample: the low 32 bits of its number in the data set).
  ValueId input(std::string name, const Shape& shape, ValueType type = ValueType::real);
  // Adds a node whose inputs exist; infers shapes, declares parameters. Errors carry `where` and the node's name.
  // Nodes `of` one layer have one set of parameters, states and random draws, which have the layer's name.
  std::vector<ValueId> add(std::string name, LayerPtr layer, std::vector<ValueId> inputs, std::string where = {},
                           std::string of = {});

  // Of the node added last.
  void set_stage(int stage) { nodes_.back().stage = stage; }

  // The value whose gradient starts the backward pass: the loss node's. Evaluation reads its sums.
  void set_loss(int node) { loss_ = node; }
  int loss() const { return loss_; }

  // Whether the loss's sums tell right predictions from wrong ones: mse does not.
  bool counts_correct() const;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const ParameterSet& parameters() const { return parameters_; }
  ValueId find(std::string_view value_name) const;  // -1 where there is none
  std::vector<std::string> value_names() const;

 private:
  std::vector<ValueId> add_node(Node node);
  std::vector<int> declare_all(const Node& node, const std::vector<Shape>& inputs);
  int declare(const Node& node, const ParameterDecl& decl, const ParameterSlice& slice);
  bool comes_by_itself(ValueId id) const;
  void check_types(const Layer& layer, const std::vector<ValueId>& inputs) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  ParameterSet parameters_;
  int loss_ = -1;
};

}  // namespace echelon::inline model
