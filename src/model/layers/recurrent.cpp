// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: rnn (tanh or relu), lstm, gru. A sequence (T, F) gives the states at every position (T, H), "name",
// the last state (H), "name.1", and for lstm its last cell (H), "name.2". device/ops/rnn.hpp has the formulas.
//
//   inputs = ["x"]            begins with states of 0
//   inputs = ["x", "h", "c"]  begins with another layer's last states (h alone but for lstm)
//   reverse = true            runs from the end of the sequence to its beginning; outputs stay in their positions
//   carry = true              truncated back-propagation through time (Williams, Peng 1990): a batch begins with the
//                             states that the last batch of this program ended with, without gradients of them
//
// If sequences have different lengths, a layer along the positions of "samples" keeps its state behind the last
// position.
//
// A time chunk of a longer sequence (on_steps) takes the final states of the chunk before it as inputs; with `carry`
// the first chunk loads the states of the last batch and the last chunk stores them. Parts of the units (on_states):
// splits/recurrent_part.hpp.
#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/recurrent.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"
#include "model/splits/recurrent_part.hpp"

namespace echelon::inline model {
namespace {

constexpr int kParameters = 4;

class Recurrent final : public SplittableLayer {
 public:
  Recurrent(const LayerConfig& config, Cell cell)
      : kind_(config.type),
        carry_(config.carry),
        form_{.cell = cell,
              .H = config.units,
              .reverse = config.reverse,
              .first = 0,
              .loads_recurrent_state = carry_,
              .stores_recurrent_state = carry_} {
    if (form_.H < 1) throw ConfigError("a recurrent layer needs the key units, the size of its state, at least 1");
    if (carry_ && form_.reverse)
      throw ConfigError(
          "carry = true continues where the previous batch ended, but reverse = true begins at the other end; set one "
          "of "
          "them");
    if (carry_ && config.inputs.size() > 1)
      throw ConfigError(fmt::format(
          "carry = true begins with the states of the previous batch, but inputs also give '{}'; use one of them",
          config.inputs[kState]));
  }

  std::string_view kind() const override { return kind_; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{}{}{}{}", form_.H, form_.cell == Cell::relu ? " relu" : "", form_.reverse ? " reverse" : "",
                       carry_ ? " carry" : "");
  }
  int arity() const override { return -1; }
  bool wants_lengths() const override { return true; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape &x = inputs[kSequence], state{form_.H};
    if (x.rank() != 2)
      throw ConfigError(
          fmt::format("a recurrent layer takes a sequence of features (T, F), but its input is {}", x.text()));
    const std::size_t given = inputs.size() - 1 - (inputs.back().rank() == 0 ? 1 : 0);
    if (given != 0 && given != form_.states())
      throw ConfigError(fmt::format(
          "the layer takes a sequence, or a sequence and {}, but {} inputs are given",
          form_.has_c() ? "the states h and c of another lstm" : "the state h of another layer", given + 1));
    for (std::size_t i = 1; i <= given; ++i)
      if (!(inputs[i] == state))
        throw ConfigError(fmt::format(
            "the initial state must have {} values, but the given one has {}; a state is the output \".1\"{} "
            "of a recurrent layer with as many units",
            state.text(), inputs[i].text(), form_.has_c() ? " or \".2\"" : ""));
    std::vector<Shape> outputs{Shape{x[0], form_.H}};
    outputs.insert(outputs.end(), form_.states(), state);
    return outputs;
  }

  // PyTorch's initial values: uniform in +-1/sqrt(H). Biases do not decay.
  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(form_.H))};
    const std::int64_t rows = gates_of(form_.cell) * form_.H;
    return {{"weight_x", Shape{rows, inputs[kSequence][1]}, init},
            {"weight_h", Shape{rows, form_.H}, init},
            {.suffix = "bias_x", .shape = Shape{rows}, .init = init, .decays = false},
            {.suffix = "bias_h", .shape = Shape{rows}, .init = init, .decays = false}};
  }

  void forward(Lowering& lowering) const override {
    if (form_.loads_recurrent_state) load_recurrent_state(lowering, form_);
    std::vector<TensorRef> args = inputs(lowering);
    for (int i = kPlaces; i <= static_cast<int>(form_.states()); ++i) args.push_back(lowering.output(i));
    lowering.op(spec(OpKind::rnn_forward, lowering), args, ScaleSource::one, 0);
    if (form_.stores_recurrent_state) store_recurrent_state(lowering, form_);
  }

  void backward(Lowering& lowering) const override {
    std::vector<TensorRef> args = inputs(lowering);
    args.push_back(lowering.output(kPlaces));
    for (int i = kPlaces; i <= static_cast<int>(form_.states()); ++i)
      if (lowering.has_grad_output(i)) args.push_back(lowering.grad_output(i));
    args.push_back(lowering.grad_input(kSequence));
    for (int j = 0; j < kParameters; ++j) args.push_back(lowering.grad_parameter(j));
    for (int i = 0; i < static_cast<int>(form_.states()); ++i) {
      if (begins_with_inputs(lowering)) args.push_back(lowering.grad_input(kState + i));
      if (form_.loads_recurrent_state)
        args.push_back(lowering.kept(i == 0 ? "dh0" : "dc0", state_shape(lowering, form_), lowering.dtype()));
    }
    lowering.op(spec(OpKind::rnn_backward, lowering), args, ScaleSource::one, 0);
  }

  LayerPtr on_steps(const Units& steps) const override {
    if (form_.reverse) return nullptr;
    auto chunk = std::make_shared<Recurrent>(*this);
    chunk->form_.first = steps.begin;
    chunk->form_.loads_recurrent_state = carry_ && steps.begin == 0;
    chunk->form_.stores_recurrent_state = carry_ && steps.end == steps.all;
    return chunk;
  }
  int recurrent_states() const override { return static_cast<int>(form_.states()); }
  LayerPtr on_states(const Units& units, int gathered, int summed) const override {
    return make_recurrent_part(std::make_shared<Recurrent>(*this), form_, units, {gathered, summed});
  }
  std::int64_t state_units() const override { return form_.H; }

 private:
  // The arguments common to forward and backward: x, parameters, states, lengths.
  std::vector<TensorRef> inputs(Lowering& lowering) const {
    std::vector<TensorRef> args{lowering.input(kSequence)};
    for (int j = 0; j < kParameters; ++j) args.push_back(lowering.parameter(j));
    if (form_.loads_recurrent_state)
      for (int i = 0; i < static_cast<int>(form_.states()); ++i) args.push_back(initial_state(lowering, form_, i));
    for (int i = kState; i < lowering.inputs(); ++i) args.push_back(lowering.input(i));
    return args;
  }

  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(kSequence);
    RnnDims d{.N = x[0], .T = x[1], .F = x[2], .H = form_.H, .cell = form_.cell, .reverse = form_.reverse};
    d.initial = begins_with_states(lowering, form_);
    d.lengths = has_lengths(lowering);
    d.first = form_.first;
    if (kind == OpKind::rnn_backward) {
      d.dy = lowering.has_grad_output(kPlaces);
      d.dhn = lowering.has_grad_output(kLastH);
      d.dcn = form_.has_c() && lowering.has_grad_output(kLastC);
    }
    return {.kind = kind, .dtype = lowering.dtype(), .dims = d};
  }

  std::string kind_;
  bool carry_;
  RecurrentForm form_;
};

// `in`: copies the program's states to the initial states of this batch; else the final states to the program's states,
// which are f32 if activations are halves.
void move_states(Lowering& lowering, const RecurrentForm& form, bool in) {
  const Shape shape = state_shape(lowering, form);
  const DType here = lowering.dtype(), kept = wide_of(here);
  ReorderDims dims{shape};
  if (kept != here) dims.from = in ? kept : here;
  const OpSpec copy{.kind = OpKind::reorder, .dtype = in ? here : kept, .dims = dims};
  for (int i = 0; i < static_cast<int>(form.states()); ++i) {
    const TensorRef stored = lowering.state(i == 0 ? "h" : "c", shape);
    if (in)
      lowering.op(copy, {stored, initial_state(lowering, form, i)});
    else
      lowering.op(copy, {lowering.output(kLastH + i), stored});
  }
}

}  // namespace

void load_recurrent_state(Lowering& lowering, const RecurrentForm& form) { move_states(lowering, form, true); }
void store_recurrent_state(Lowering& lowering, const RecurrentForm& form) { move_states(lowering, form, false); }

LayerPtr make_rnn(const LayerConfig& config) {
  return std::make_shared<Recurrent>(config, config.activation == "relu" ? Cell::relu : Cell::tanh);
}
LayerPtr make_lstm(const LayerConfig& config) { return std::make_shared<Recurrent>(config, Cell::lstm); }
LayerPtr make_gru(const LayerConfig& config) { return std::make_shared<Recurrent>(config, Cell::gru); }

}  // namespace echelon::inline model
