// SPDX-License-Identifier: Apache-2.0
// Every part reads the whole state before a step and computes its own units of the next state, so that states are
// gathered after every step. In the backward pass the parts' gradients with respect to the whole state are summed. Work
// that does not depend on the state is one product over all steps: the sequence times its weights before the steps, the
// gradients of weights and of the sequence after them.
#include "model/splits/recurrent_part.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace echelon::inline model {
namespace {

void copy(Lowering& lowering, const Shape& shape, DType from_dtype, TensorRef from, TensorRef to) {
  OpSpec spec{.kind = OpKind::reorder, .dtype = lowering.dtype(), .dims = ReorderDims{shape, from_dtype}};
  lowering.op(spec, {from, to});
}

enum Weight : int { kWeightX, kWeightH, kBiasX, kBiasH };

class RecurrentPart final : public SplittableLayer {
 public:
  RecurrentPart(LayerPtr whole, const RecurrentForm& form, const Units& units, StateCuts cuts)
      : whole_(std::move(whole)), form_(form), units_(units), cuts_(cuts) {}

  std::string_view kind() const override { return whole_->kind(); }
  std::string attributes(std::span<const Shape> inputs) const override {
    return fmt::format("{} units {} to {}", whole_->attributes(inputs), units_.begin, units_.end);
  }
  int arity() const override { return -1; }
  bool wants_lengths() const override { return true; }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return whole_->infer(inputs); }

  // The shapes of the rows of these units in each gate.
  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterDecl> decls = whole_->parameters(inputs);
    const std::int64_t G = gates_of(form_.cell), U = units_.count();
    for (ParameterDecl& decl : decls) decl.shape = decl.shape.rank() == 2 ? Shape{G, U, decl.shape[1]} : Shape{G, U};
    return decls;
  }
  std::vector<ParameterSlice> slices(std::span<const Shape> inputs) const override {
    const std::int64_t G = gates_of(form_.cell), H = form_.H, first = units_.begin;
    std::vector<ParameterSlice> slices;
    for (const ParameterDecl& whole : whole_->parameters(inputs))
      if (whole.shape.rank() == 2)
        slices.push_back({.whole = {G, H, whole.shape[1]}, .offset = {0, first, 0}, .folded = 0});
      else
        slices.push_back({.whole = {G, H}, .offset = {0, first}, .folded = 0});
    return slices;
  }

  void forward(Lowering& lowering) const override {
    if (form_.loads_recurrent_state) load_recurrent_state(lowering, form_);
    const Extents e = extents(lowering);
    const TensorRef sums = lowering.kept("a", Shape{e.N, e.T, gates()}, lowering.dtype());
    lowering.op(dense(OpKind::dense_forward, lowering.dtype(), e, e.F),
                {lowering.input(kSequence), lowering.parameter(kWeightX), lowering.parameter(kBiasX), sums});
    const TensorRef gates_kept = stack(lowering, "gates", e, parts_of(form_.cell) * units_.count());
    const bool halves = lowering.dtype() != e.wide;
    const TensorRef y = halves ? stack(lowering, "y", e, form_.H) : lowering.output(kPlaces);
    TensorRef h = first_h(lowering), c = form_.has_c() ? first_c(lowering, e) : TensorRef{};
    for (std::int64_t s = 0; s < e.T; ++s) {
      if (lowering.training()) place(lowering, e, s, h, stack(lowering, "states", e, form_.H), false);
      const TensorRef h_own = own(lowering, "h", s + 1, e);
      std::vector<TensorRef> args{sums, lowering.parameter(kWeightH), lowering.parameter(kBiasH), h};
      if (form_.has_c()) args.push_back(c);
      if (has_lengths(lowering)) args.push_back(lengths(lowering));
      args.push_back(h_own);
      if (form_.has_c()) args.push_back(c = own(lowering, "c", s + 1, e));
      args.push_back(gates_kept);
      lowering.op(step(OpKind::rnn_step_forward, lowering, e, s), args);
      h = s + 1 == e.T ? lowering.output(kLastH) : all(lowering, "h", s + 1, e);
      lowering.transfer(cuts_.gathered, h_own, h, true);
      place(lowering, e, s, h, y, has_lengths(lowering));
    }
    if (form_.has_c()) lowering.transfer(cuts_.gathered, c, lowering.output(kLastC), true);
    if (halves) copy(lowering, lowering.output_shape(kPlaces), e.wide, y, lowering.output(kPlaces));
    if (form_.stores_recurrent_state) store_recurrent_state(lowering, form_);
  }

  void backward(Lowering& lowering) const override {
    const Extents e = extents(lowering);
    const bool two = form_.cell == Cell::gru;  // separate gradients before and behind weight_h
    const TensorRef states = stack(lowering, "states", e, form_.H), da = stack(lowering, "da", e, gates()),
                    db = two ? stack(lowering, "db", e, gates()) : da,
                    gates_kept = stack(lowering, "gates", e, parts_of(form_.cell) * units_.count());
    const Shape state = state_shape(lowering, form_);
    TensorRef dh = lowering.has_grad_output(kLastH) ? lowering.grad_output(kLastH) : lowering.zeros("no dh", state);
    TensorRef dc = form_.has_c() ? last_dc(lowering, e) : TensorRef{};
    for (std::int64_t s = e.T - 1; s >= 0; --s) {
      std::vector<TensorRef> args{lowering.parameter(kWeightH), gates_kept};
      if (two) args.push_back(states);
      if (form_.has_c()) {
        const TensorRef c = s == 0 ? begin_c(lowering, e) : own(lowering, "c", s, e);
        args.insert(args.end(), {c, own(lowering, "c", s + 1, e), dc});
      }
      if (has_lengths(lowering)) args.push_back(lengths(lowering));
      if (lowering.has_grad_output(kPlaces)) args.push_back(lowering.grad_output(kPlaces));
      args.insert(args.end(), {dh, da});
      if (two) args.push_back(db);
      const TensorRef dh_own = all(lowering, "dh of", s, e);
      args.push_back(dh_own);
      if (form_.has_c()) args.push_back(dc = own(lowering, "dc", s, e));
      lowering.op(step(OpKind::rnn_step_backward, lowering, e, s), args);
      if (s > 0) lowering.transfer(cuts_.summed, dh_own, dh = all(lowering, "dh", s, e), true);
      if (s == 0 && begins_with_inputs(lowering)) give_back(lowering, dh_own, dc);
    }
    weight_gradients(lowering, e, kWeightX, kBiasX, lowering.input(kSequence), e.F, da);
    weight_gradients(lowering, e, kWeightH, kBiasH, states, form_.H, db);
    if (lowering.wants_grad_input(kSequence))
      lowering.op(dense(OpKind::dense_backward_data, lowering.dtype(), e, e.F),
                  {da, lowering.parameter(kWeightX), lowering.grad_input(kSequence)});
  }

 private:
  struct Extents {
    std::int64_t N, T, F;
    DType wide;  // dtype of states and gates: f32 if activations are halves
  };
  static Extents extents(const Lowering& lowering) {
    const Shape x = lowering.input_shape(kSequence);
    return {x[0], x[1], x[2], wide_of(lowering.dtype())};
  }
  std::int64_t gates() const { return gates_of(form_.cell) * units_.count(); }  // rows of the weights here

  // Tensors of the node: (N, T, features) of all steps, (N, H) and (N, units here) of one.
  static TensorRef stack(Lowering& lowering, const char* tag, const Extents& e, std::int64_t features) {
    return lowering.kept(tag, Shape{e.N, e.T, features}, e.wide);
  }
  TensorRef all(Lowering& lowering, const char* tag, std::int64_t s, const Extents& e) const {
    return lowering.kept(fmt::format("all {} {}", tag, s), Shape{e.N, form_.H}, e.wide);
  }
  TensorRef own(Lowering& lowering, const char* tag, std::int64_t s, const Extents& e) const {
    return lowering.kept(fmt::format("own {} {}", tag, s), Shape{e.N, units_.count()}, e.wide);
  }
  static TensorRef lengths(Lowering& lowering) { return lowering.input(lowering.inputs() - 1); }

  // States before the first step.
  TensorRef first_h(Lowering& lowering) const {
    if (form_.loads_recurrent_state) return initial_state(lowering, form_, 0);
    if (begins_with_inputs(lowering)) return lowering.input(kState);
    return lowering.zeros("no h", state_shape(lowering, form_));
  }
  TensorRef begin_c(Lowering& lowering, const Extents& e) const {
    if (begins_with_states(lowering, form_)) return own(lowering, "c", 0, e);
    return lowering.zeros("no c", Shape{e.N, units_.count()});
  }
  TensorRef first_c(Lowering& lowering, const Extents& e) const {
    const TensorRef c = begin_c(lowering, e);
    if (begins_with_states(lowering, form_))
      slice(lowering, e, form_.loads_recurrent_state ? initial_state(lowering, form_, 1) : lowering.input(kState + 1),
            c);
    return c;
  }
  TensorRef last_dc(Lowering& lowering, const Extents& e) const {
    if (!lowering.has_grad_output(kLastC)) return lowering.zeros("no dc", Shape{e.N, units_.count()});
    const TensorRef dc = own(lowering, "dc", e.T, e);
    slice(lowering, e, lowering.grad_output(kLastC), dc);
    return dc;
  }
  void slice(Lowering& lowering, const Extents& e, TensorRef whole, TensorRef own) const {
    const SliceDims dims{e.N, form_.H, 1, 1, units_.begin, units_.count()};
    lowering.op({.kind = OpKind::slice, .dtype = e.wide, .dims = dims}, {whole, own});
  }
  void give_back(Lowering& lowering, TensorRef dh_own, TensorRef dc) const {
    if (lowering.wants_grad_input(kState)) lowering.transfer(cuts_.summed, dh_own, lowering.grad_input(kState), true);
    if (form_.has_c() && lowering.wants_grad_input(kState + 1))
      lowering.transfer(cuts_.gathered, dc, lowering.grad_input(kState + 1), true);
  }

  // The time of the s-th step in the order of execution.
  std::int64_t time(const Extents& e, std::int64_t s) const { return form_.reverse ? e.T - 1 - s : s; }
  void place(Lowering& lowering, const Extents& e, std::int64_t s, TensorRef h, TensorRef to, bool with_lengths) const {
    const PlaceStepDims dims{e.N, e.T, form_.H, time(e, s), with_lengths, form_.first};
    std::vector<TensorRef> args{h};
    if (with_lengths) args.push_back(lengths(lowering));
    args.push_back(to);
    lowering.op({.kind = OpKind::place_step, .dtype = e.wide, .dims = dims}, args);
  }
  OpSpec step(OpKind kind, const Lowering& lowering, const Extents& e, std::int64_t s) const {
    RnnStepDims d{.N = e.N, .T = e.T, .H = form_.H, .U = units_.count(), .begin = units_.begin, .t = time(e, s)};
    d.cell = form_.cell;
    d.lengths = has_lengths(lowering);
    d.first = form_.first;
    if (kind == OpKind::rnn_step_backward) d.dy = lowering.has_grad_output(kPlaces);
    return {.kind = kind, .dtype = e.wide, .dims = d};
  }
  // The spec of the product over all steps.
  OpSpec dense(OpKind kind, DType dtype, const Extents& e, std::int64_t features) const {
    return {.kind = kind, .dtype = dtype, .dims = DenseDims{.N = e.N * e.T, .F = features, .K = gates()}};
  }
  void weight_gradients(Lowering& lowering, const Extents& e, Weight weight, Weight bias, TensorRef x,
                        std::int64_t features, TensorRef dy) const {
    lowering.op(dense(OpKind::dense_backward_weights, lowering.dtype(), e, features),
                {x, dy, lowering.grad_parameter(weight), lowering.grad_parameter(bias)});
  }

  LayerPtr whole_;
  RecurrentForm form_;
  Units units_;
  StateCuts cuts_;
};

}  // namespace

LayerPtr make_recurrent_part(LayerPtr whole, const RecurrentForm& form, const Units& units, StateCuts cuts) {
  return std::make_shared<RecurrentPart>(std::move(whole), form, units, cuts);
}

}  // namespace echelon::inline model
