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
#include <optional>
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
  Shape shape;         // here
  Init init;
  bool decays = true;
  ParameterKind kind = ParameterKind::weight;
  double momentum = 0.1;  // statistics
  bool sparse = false;    // (rows, ..) of whose gradient `backward` marks the rows that it writes (Lowering::row_marks)
  Shape whole = {};       // of the whole tensor, where this is a slice of it
  Shape offset = {};      // likewise: where the slice begins
  int folded = -1;        // likewise: in files the axes `folded` and `folded` + 1 are one
  bool alone = false;     // whole, and in this part of a layer alone
};

// Some of a layer's units: features, or channels of an image.
struct Units {
  std::int64_t begin = 0, end = 0, all = 0;
  std::int64_t count() const { return end - begin; }
  Units times(std::int64_t each) const { return {begin * each, end * each, all * each}; }
};

// Which rows of an image a layer looks at: row p of y sees rows [p * stride - padding, .. + reach) of x.
struct RowWindow {
  std::int64_t reach = 1, stride = 1, padding = 0;
  bool pads = false;       // on_rows pads by itself; else its inputs hold rows of padding, 0
  bool in_pieces = false;  // some rows may be computed after others
};

class Layer;
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
  // Parts of this layer, for a split over ranks (parallel/tensor.hpp); null where it cannot be cut so.
  //   with_outputs  these of its outputs, from whole inputs
  //   with_inputs   from these of its inputs, what they add to every output: the parts' outputs are to be summed
  //   on_channels   where channels do not meet: the same layer on these of the channels
  virtual LayerPtr with_outputs(const Units&) const { return nullptr; }
  virtual LayerPtr with_inputs(const Units&) const { return nullptr; }
  virtual LayerPtr on_channels(const Units&) const { return nullptr; }
  //   on_classes    a loss of these of the logits: what its `parts` say of each label is gathered at `cut`, so many
  //                 numbers of each
  virtual LayerPtr on_classes(const Units&, int cut, int parts) const {
    (void)cut, (void)parts;
    return nullptr;
  }
  // Of a table that with_inputs cuts by rows, each an index that the layer may be given; else 0.
  virtual std::int64_t table_rows() const { return 0; }
  //   on_states   of a recurrent layer: these of its `state_units`. Before each step the states of all parts are
  //   gathered
  //               at cut `gathered`, and backward the gradients of whole states are summed at `summed`.
  virtual LayerPtr on_states(const Units&, int gathered, int summed) const {
    (void)gathered, (void)summed;
    return nullptr;
  }
  virtual std::int64_t state_units() const { return 0; }
  // The layer on some steps of its sequences (parallel/staircase.hpp), where steps meet through states alone; null
  // where it sees all of them at once.
  virtual LayerPtr on_steps(const Units&) const { return nullptr; }
  // How many outputs behind the first are last states, which the next steps take as inputs behind the first.
  virtual int states_of_steps() const { return 0; }
  // For a split by the rows of images (parallel/space.hpp): none where outputs need all rows.
  virtual std::optional<RowWindow> row_window() const { return std::nullopt; }
  // Whether it sums over all rows, and so needs the number of a cut.
  virtual bool sums_over_rows() const { return false; }
  // The layer for these rows of its outputs, of inputs that begin with the first row its windows reach and have fewer
  // than a stride behind the last; padding is among them but where it `pads`.
  virtual LayerPtr on_rows(const Units& rows, int cut) const;
  virtual void forward(Lowering& lowering) const = 0;
  virtual void backward(Lowering& lowering) const = 0;
};

inline LayerPtr Layer::fused_with(const Layer&) const { return nullptr; }
inline LayerPtr Layer::on_rows(const Units&, int) const { return nullptr; }

}  // namespace echelon::inline model
