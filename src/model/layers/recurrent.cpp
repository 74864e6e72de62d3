// Recurrent layers: rnn (tanh or relu), lstm, gru. A sequence (T, F) gives the states at every place (T, H), "name",
// the last state (H), "name.1", and for lstm its last cell (H), "name.2". device/op_spec.hpp has the formulas.
//
//   inputs = ["x"]            begins with states of 0
//   inputs = ["x", "h", "c"]  begins with another layer's last states (h alone but for lstm)
//   reverse = true            runs from the end of the sequence to its beginning; outputs stay in their places
//   carry = true              truncated back-propagation through time (Williams, Peng 1990): a batch begins with the
//                             states that the last batch of this program ended with, and no gradient goes back there
//
// Where samples are of unlike length, a layer along the samples' places leaves its state alone behind the last one.
//
// A chunk of a longer sequence (on_steps) begins with the states that the chunk before ended with, as if they were
// given; carried states come into the first and leave the last.
#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

enum Input : int { kSequence = 0, kState = 1 };
enum Output : int { kPlaces = 0, kLastH = 1, kLastC = 2 };
constexpr int kParameters = 4;

class Recurrent final : public Layer {
 public:
  Recurrent(const LayerConfig& config, Cell cell)
      : kind_(config.type),
        cell_(cell),
        H_(config.units),
        reverse_(config.reverse),
        carry_(config.carry),
        takes_carried_(carry_),
        leaves_carried_(carry_) {
    if (H_ < 1) throw ConfigError("needs units, the size of the state, at least 1");
    if (carry_ && reverse_)
      throw ConfigError("carry = true goes on where the last batch ended, reverse = true comes from the other end");
    if (carry_ && config.inputs.size() > 1)
      throw ConfigError(fmt::format("carry = true begins with the last batch's states, but '{}' is given as well",
                                    config.inputs[kState]));
  }

  std::string_view kind() const override { return kind_; }
  std::string attributes() const override {
    return fmt::format("{}{}{}{}", H_, cell_ == Cell::relu ? " relu" : "", reverse_ ? " reverse" : "",
                       carry_ ? " carry" : "");
  }
  int arity() const override { return -1; }
  bool wants_lengths() const override { return true; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape &x = inputs[kSequence], state{H_};
    if (x.rank() != 2)
      throw ConfigError(
          fmt::format("a recurrent layer takes a sequence of features (T, F), its input is {}", x.text()));
    const std::size_t given = inputs.size() - 1 - (inputs.back().rank() == 0 ? 1 : 0);
    if (given != 0 && given != states())
      throw ConfigError(fmt::format("takes a sequence, or a sequence and {}; {} inputs are given",
                                    has_c() ? "the states h and c of another lstm" : "the state h of another layer",
                                    given + 1));
    for (std::size_t i = 1; i <= given; ++i)
      if (!(inputs[i] == state))
        throw ConfigError(
            fmt::format("begins with states of {} values, but is given {}; a state is the output \".1\"{} "
                        "of a recurrent layer of as many units",
                        state.text(), inputs[i].text(), has_c() ? " or \".2\"" : ""));
    std::vector<Shape> outputs{Shape{x[0], H_}};
    outputs.insert(outputs.end(), states(), state);
    return outputs;
  }

  // As PyTorch: uniform in +-1/sqrt(H). Biases do not decay.
  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(H_))};
    const std::int64_t rows = RnnDims{.N = 1, .T = 1, .F = 1, .H = H_, .cell = cell_}.G() * H_;
    return {{"weight_x", Shape{rows, inputs[kSequence][1]}, init},
            {"weight_h", Shape{rows, H_}, init},
            {"bias_x", Shape{rows}, init, false},
            {"bias_h", Shape{rows}, init, false}};
  }

  LayerPtr on_steps(const Units& steps) const override {
    if (reverse_) return nullptr;
    auto chunk = std::make_shared<Recurrent>(*this);
    chunk->first_ = steps.begin;
    chunk->takes_carried_ = carry_ && steps.begin == 0;
    chunk->leaves_carried_ = carry_ && steps.end == steps.all;
    return chunk;
  }
  int states_of_steps() const override { return static_cast<int>(states()); }

  void forward(Lowering& lowering) const override {
    if (takes_carried_) move_states(lowering, true);
    std::vector<TensorRef> args = inputs(lowering);
    for (int i = kPlaces; i <= static_cast<int>(states()); ++i) args.push_back(lowering.output(i));
    lowering.op(spec(OpKind::rnn_forward, lowering), args, ScaleSource::one, 0);
    if (leaves_carried_) move_states(lowering, false);
  }

  void backward(Lowering& lowering) const override {
    std::vector<TensorRef> args = inputs(lowering);
    args.push_back(lowering.output(kPlaces));
    for (int i = kPlaces; i <= static_cast<int>(states()); ++i)
      if (lowering.has_grad_output(i)) args.push_back(lowering.grad_output(i));
    args.push_back(lowering.grad_input(kSequence));
    for (int j = 0; j < kParameters; ++j) args.push_back(lowering.grad_parameter(j));
    for (int i = 0; i < static_cast<int>(states()); ++i) {
      if (begins_with_inputs(lowering)) args.push_back(lowering.grad_input(kState + i));
      if (takes_carried_)
        args.push_back(lowering.kept(i == 0 ? "dh0" : "dc0", state_shape(lowering), lowering.dtype()));
    }
    lowering.op(spec(OpKind::rnn_backward, lowering), args, ScaleSource::one, 0);
  }

 private:
  bool has_c() const { return cell_ == Cell::lstm; }
  std::size_t states() const { return has_c() ? 2 : 1; }
  static bool has_lengths(const Lowering& lowering) {
    return lowering.inputs() > 1 && lowering.input_shape(lowering.inputs() - 1).rank() == 1;
  }
  static bool begins_with_inputs(const Lowering& lowering) {
    return lowering.inputs() - (has_lengths(lowering) ? 1 : 0) > 1;
  }
  Shape state_shape(const Lowering& lowering) const { return Shape{lowering.batch(), H_}; }
  TensorRef begin(Lowering& lowering, int state) const {
    return lowering.kept(state == 0 ? "h0" : "c0", state_shape(lowering), lowering.dtype());
  }

  // Carried states to where this batch begins, or the last states of this batch to where they are carried.
  void move_states(Lowering& lowering, bool in) const {
    const OpSpec copy{.kind = OpKind::reorder, .dtype = lowering.dtype(), .dims = ReorderDims{state_shape(lowering)}};
    for (int i = 0; i < static_cast<int>(states()); ++i) {
      const TensorRef carried = lowering.state(i == 0 ? "h" : "c", state_shape(lowering));
      if (in)
        lowering.op(copy, {carried, begin(lowering, i)});
      else
        lowering.op(copy, {lowering.output(kLastH + i), carried});
    }
  }

  // What both directions read: x, parameters, states, lengths.
  std::vector<TensorRef> inputs(Lowering& lowering) const {
    std::vector<TensorRef> args{lowering.input(kSequence)};
    for (int j = 0; j < kParameters; ++j) args.push_back(lowering.parameter(j));
    if (takes_carried_)
      for (int i = 0; i < static_cast<int>(states()); ++i) args.push_back(begin(lowering, i));
    for (int i = kState; i < lowering.inputs(); ++i) args.push_back(lowering.input(i));
    return args;
  }

  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(kSequence);
    RnnDims d{.N = x[0], .T = x[1], .F = x[2], .H = H_, .cell = cell_, .reverse = reverse_};
    d.initial = takes_carried_ || begins_with_inputs(lowering);
    d.lengths = has_lengths(lowering);
    d.first = first_;
    if (kind == OpKind::rnn_backward) {
      d.dy = lowering.has_grad_output(kPlaces);
      d.dhn = lowering.has_grad_output(kLastH);
      d.dcn = has_c() && lowering.has_grad_output(kLastC);
    }
    return {.kind = kind, .dtype = lowering.dtype(), .dims = d};
  }

  std::string kind_;
  Cell cell_;
  std::int64_t H_;
  bool reverse_, carry_;
  std::int64_t first_ = 0;               // step of the whole sequence
  bool takes_carried_, leaves_carried_;  // this chunk of it
};

}  // namespace

LayerPtr make_rnn(const LayerConfig& config) {
  return std::make_shared<Recurrent>(config, config.activation == "relu" ? Cell::relu : Cell::tanh);
}
LayerPtr make_lstm(const LayerConfig& config) { return std::make_shared<Recurrent>(config, Cell::lstm); }
LayerPtr make_gru(const LayerConfig& config) { return std::make_shared<Recurrent>(config, Cell::gru); }

}  // namespace echelon
