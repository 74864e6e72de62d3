// SPDX-License-Identifier: Apache-2.0
// How a layer is divided over several ranks: the interface between a layer and the graph rewrites of parallel/.
//
// A layer that can be divided derives from SplittableLayer instead of Layer and overrides what applies to it; a layer
// that cannot be divided implements nothing here. Every function that returns a layer returns a *part*: a new layer
// that computes the described share of the whole one, from and to the tensors that one rank holds. Null means that the
// layer cannot be divided in this way. The functions are const and depend only on their arguments, so all ranks of a
// model group get parts that fit together. Called while a graph is rewritten, before parameters exist.
//
//   kind of division   asked by                          functions
//   units              parallel/tensor.cpp               with_outputs, with_inputs, on_channels, table_rows
//   classes            parallel/tensor.cpp               on_classes
//   recurrent units    parallel/tensor.cpp               state_units, on_states
//   steps in time      parallel/time_chunk_pipeline.cpp  on_steps, recurrent_states
//   rows of images     parallel/space.cpp                row_window, row_sums, on_rows
//   slices             model/graph.cpp                   slices
//
// Parts exchange tensors at *cuts* (model/splits/cut.hpp): a cut is a number that the caller chooses and that
// Lowering::transfer passes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/shape.hpp"
#include "model/layer.hpp"

namespace echelon::inline model {

// The half-open range [begin, end) of `all` units: features, channels, classes, rows of an image or steps of a
// sequence.
struct Units {
  std::int64_t begin = 0, end = 0, all = 0;
  std::int64_t count() const { return end - begin; }
  // The corresponding range if each unit consists of `each` smaller ones (flatten: C -> C*H*W).
  Units times(std::int64_t each) const { return {begin * each, end * each, all * each}; }
};

// The rows of its input that a layer of images reads: row p of the output depends on the input's rows
// [p * stride - padding, p * stride - padding + reach). The default is that of an elementwise layer. If the output has
// `up` times as many rows, row p depends on the input's rows h with up * h in that range.
struct RowWindow {
  std::int64_t reach = 1, stride = 1, padding = 0, up = 1;
  bool pads = false;       // the part from on_rows pads at the edges of the image; else its input holds rows of zeros
  bool in_pieces = false;  // some rows of the output may be computed before others (model/splits/rows_window.cpp)
};

// The f64 sums over all rows that a layer of images needs.
struct RowSums {
  Shape shape;
  bool per_sample = false;  // of each sample, else of all together
};

// The place of a part's parameter in that of the whole layer.
struct ParameterSlice {
  Shape whole;         // the shape of the whole tensor
  Shape offset;        // the first index of the slice, one entry per axis
  int folded = -1;     // axes `folded` and `folded` + 1 of `whole` are one axis in checkpoints; -1: none
  bool alone = false;  // the slice is the whole tensor, and other parts of the layer have no such parameter
};

class LayerSplit {
 public:
  virtual ~LayerSplit() = default;

  // Returns the slices that the parameters of a part are, in the order of Layer::parameters, for the same input shapes.
  // Empty: every parameter is a whole tensor.
  virtual std::vector<ParameterSlice> slices(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }

  // Tensor parallelism (Megatron-LM, Shoeybi et al. 2019). Units are the features of (F) and (T, F), the channels of
  // (C, H, W).
  //   with_outputs  computes these units of the output from the whole input ("column parallel")
  //   with_inputs   takes these units of the input and computes the addend of each output that comes from them ("row
  //                 parallel"): the outputs of all parts are to be summed. The part with unit 0 adds the bias.
  //   on_channels   for layers that compute each unit from the same unit of the input: these units of both. (T, F) is
  //                 never divided so.
  virtual LayerPtr with_outputs(const Units& units) const {
    (void)units;
    return nullptr;
  }
  virtual LayerPtr with_inputs(const Units& units) const {
    (void)units;
    return nullptr;
  }
  virtual LayerPtr on_channels(const Units& units) const {
    (void)units;
    return nullptr;
  }
  // The rows of the table of a layer that looks up tokens: with_inputs then takes a range of them, and the part's
  // output is zero for the tokens of other parts. 0: the layer has no table.
  virtual std::int64_t table_rows() const { return 0; }

  // Returns the same loss from the logits of these classes. For every label, each part computes
  // SoftmaxPartDims::kPartials numbers, which all `parts` ranks gather at `cut`.
  virtual LayerPtr on_classes(const Units& classes, int cut, int parts) const {
    (void)classes, (void)cut, (void)parts;
    return nullptr;
  }

  // The number of units of a recurrent layer's state; 0: the layer is not recurrent.
  virtual std::int64_t state_units() const { return 0; }
  // Computes these of the state_units. After each step the states of all parts are gathered at the cut `gathered`; in
  // the backward pass the gradients with respect to whole states are summed at the cut `summed`. Outputs are whole on
  // every part, and so are gradients of given states; the gradient of the input sequence is the part's addend.
  virtual LayerPtr on_states(const Units& units, int gathered, int summed) const {
    (void)units, (void)gathered, (void)summed;
    return nullptr;
  }

  // Time chunks: the layer on these steps of its sequences, if steps depend on each other only through recurrent
  // states. Null if the layer reads all steps at once.
  virtual LayerPtr on_steps(const Units& steps) const {
    (void)steps;
    return nullptr;
  }
  // The number of final states among the outputs, which follow output 0. The next chunk takes them as inputs that
  // follow input 0.
  virtual int recurrent_states() const { return 0; }

  // Spatial parallelism: none if the layer needs whole images.
  virtual std::optional<RowWindow> row_window() const { return std::nullopt; }
  // The sums that the layer, whose whole output is of this shape, takes over all rows of the images; on_rows then needs
  // a cut, at which those of all spatial shards are added. None: the layer takes no sums.
  virtual std::optional<RowSums> row_sums(const Shape& output) const {
    (void)output;
    return std::nullopt;
  }
  // The layer for these rows of its output. Its input begins with the first row that the window of the first output row
  // reads, and ends fewer than `stride` rows behind the last one that is read. Rows of padding are part of that input
  // unless RowWindow::pads. `cut` is -1 if there are no row_sums.
  virtual LayerPtr on_rows(const Units& rows, int cut) const {
    (void)rows, (void)cut;
    return nullptr;
  }
};

// A layer that can be divided in some way.
class SplittableLayer : public Layer, public LayerSplit {
 public:
  const LayerSplit* split() const final { return this; }
};

// The split of a layer; for one that cannot be divided, an object that returns null, 0 or none for everything.
const LayerSplit& layer_split(const Layer& layer);

}  // namespace echelon::inline model
