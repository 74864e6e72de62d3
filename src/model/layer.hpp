// SPDX-License-Identifier: Apache-2.0
// A layer: mathematics on the shapes of one sample. It knows no rank, no device and no position of a batch in the run;
// splits/layer_split.hpp defines how a layer is divided over ranks.
//
// A layer object is immutable, made from its attributes (TOML or zoo code), and shared by graphs and their rewrites.
// Calls in this order:
//   infer               the shapes of the outputs from those of the inputs (of one sample, without N)
//   parameters          the tensors that it learns, with initial values
//   forward, backward   lowering to device ops for one program
//
// Adding a layer: see layers/list.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"
#include "device/op_spec.hpp"
#include "device/parameter.hpp"

namespace echelon::inline model {

class Lowering;

struct ParameterDecl {
  std::string suffix;  // "weight": the parameter is called "<node>.weight"
  Shape shape;
  Init init;
  bool decays = true;  // weight decay applies
  ParameterKind kind = ParameterKind::weight;
  double momentum = 0.1;  // statistic: weight of the newest value in the running average
  std::string of = {};    // the layer before that declares the parameter, which this one shares; "": this layer
  bool sparse = false;    // (rows, ..): backward marks the rows of the gradient that it writes (Lowering::row_marks)
};

class Layer;
class LayerSplit;
using LayerPtr = std::shared_ptr<const Layer>;

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string_view kind() const = 0;  // "conv": its type in a config
  // "32 3x3 pad 1", for the model's table.
  virtual std::string attributes(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }
  // The number of inputs without "lengths" and "ids"; -1: one or more, which `infer` checks.
  virtual int arity() const { return 1; }
  // Whether the graph's input "ids" (), the sample's number in the data set, is added as the last input.
  virtual bool wants_ids() const { return false; }
  // Whether the graph's input "lengths" (), the number of used positions of a padded sequence, is added as an input
  // (before "ids") if the data has sequences of different lengths.
  virtual bool wants_lengths() const { return false; }
  // The input whose positions "lengths" counts. "lengths" is not added if that input does not run along the positions
  // of "samples", as is the case for sequences that come from "target".
  virtual int lengths_of() const { return 0; }
  // Whether this input holds indices (tokens, labels) and no real numbers.
  virtual bool reads_indices(int input) const {
    (void)input;
    return false;
  }
  // A loss: whether its first input holds the logits of classes.
  virtual bool reads_logits() const { return false; }
  // Whether classes are the first axis of those logits, as channels are, and not the last.
  virtual bool has_class_planes() const { return false; }
  // A loss: whether an output is right or wrong, and not only near its label.
  virtual bool counts_correct() const { return true; }
  // Whether the outputs hold indices.
  virtual bool gives_indices() const { return false; }
  // Whether the gradients of the outputs are computed even if neither this layer nor one before it has parameters (for
  // values that another rank computed).
  virtual bool learns_elsewhere() const { return false; }
  // Returns the shapes of all outputs, at least one. Throws ConfigError if the input shapes do not fit, with the extent
  // in question and the nearest one that fits; Graph::add adds the node's name and file:line.
  virtual std::vector<Shape> infer(std::span<const Shape> inputs) const = 0;
  // The parameters for these input shapes, in the order of Lowering::parameter.
  virtual std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }
  // Returns one layer that computes this layer and then `next`, the only reader of its output, with the parameters of
  // this layer; null if there is none (model/fuse.hpp).
  virtual LayerPtr fused_with(const Layer& next) const;
  // This layer with a ReLU of its input included; null if there is none.
  virtual LayerPtr behind_relu() const { return nullptr; }
  // Describes the division of the layer over ranks (model/splits/layer_split.hpp); null if it cannot be divided.
  virtual const LayerSplit* split() const { return nullptr; }
  // Appends the ops that compute every output from the inputs.
  virtual void forward(Lowering& lowering) const = 0;
  // Appends the ops that compute the gradients of the inputs (if Lowering::wants_grad_input) and of the parameters from
  // those of the outputs. Only in training, after `forward` of the same program.
  virtual void backward(Lowering& lowering) const = 0;
};

inline LayerPtr Layer::fused_with(const Layer&) const { return nullptr; }

}  // namespace echelon::inline model
