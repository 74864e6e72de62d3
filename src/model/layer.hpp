// A layer: mathematics on the shapes of one sample. It never sees a rank, a device or a batch's place in the run.
//
// A layer object is made from its attributes (TOML or zoo code), then asked three things, in this order:
//   infer               output shapes from input shapes (of one sample, without N). A shape that does not fit is a
//                       ConfigError whose text says which extent and what would fit; the graph adds the node's name and
//                       file:line.
//   parameters          what it learns, with initial values
//   forward, backward   lowering to device ops for one program; backward writes the gradients of its inputs (where
//                       wanted) and of its parameters, in terms of the gradients of its outputs
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
  bool decays = true;
  ParameterKind kind = ParameterKind::weight;
  double momentum = 0.1;  // statistics
  bool sparse = false;    // (rows, ..) of whose gradient `backward` marks the rows that it writes (Lowering::row_marks)
};

class Layer;
class LayerSplit;
using LayerPtr = std::shared_ptr<const Layer>;

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string_view kind() const = 0;             // "conv"
  virtual std::string attributes() const { return {}; }  // "32 3x3 pad 1", for the model's table
  virtual int arity() const { return 1; }                // inputs it takes; -1: one or more
  // Whether the graph's input "ids", the samples' numbers in the data set, follows as one input more.
  virtual bool wants_ids() const { return false; }
  // Whether "lengths", how many places of a sequence hold something, follows as one input more where the data has it
  // (before "ids").
  virtual bool wants_lengths() const { return false; }
  // The input whose places they count; a sequence that does not run along the samples' places (what comes of "target")
  // has no lengths.
  virtual int lengths_of() const { return 0; }
  // Whether this input is indices (tokens, labels), not real numbers.
  virtual bool reads_indices(int input) const {
    (void)input;
    return false;
  }
  // Whether its outputs are indices.
  virtual bool gives_indices() const { return false; }
  // Whether its outputs' gradients are wanted though nothing before it learns here.
  virtual bool learns_elsewhere() const { return false; }
  virtual std::vector<Shape> infer(std::span<const Shape> inputs) const = 0;
  virtual std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }
  // This layer and `next`, which alone takes its output, as one layer with the same parameters; null where there is
  // none.
  virtual LayerPtr fused_with(const Layer& next) const;
  // This layer of ReLUs of its input; null where it does not hold them.
  virtual LayerPtr behind_relu() const { return nullptr; }
  // How the layer is divided over ranks (model/splits/layer_split.hpp); null where it cannot be divided.
  virtual const LayerSplit* split() const { return nullptr; }
  virtual void forward(Lowering& lowering) const = 0;
  virtual void backward(Lowering& lowering) const = 0;
};

inline LayerPtr Layer::fused_with(const Layer&) const { return nullptr; }

}  // namespace echelon::inline model
