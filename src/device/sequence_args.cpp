// Signatures of ops on sequences.
#include "device/row_bits.hpp"
#include "device/signature.hpp"

namespace echelon::inline device {

void add_args(Signature& sig, const OpSpec& spec, const AttentionDims& d) {
  ECHELON_CHECK(d.heads >= 1 && d.D % d.heads == 0, "{} features in {} heads", d.D, d.heads);
  ECHELON_CHECK(!d.causal || d.T == d.S, "causal attention of {} places over {}", d.T, d.S);
  const Shape q{d.N, d.T, d.D}, k{d.N, d.S, d.D};
  sig.in("q", q).in("k", k).in("v", k);
  if (d.lengths) sig.in("lengths", Shape{d.N}, DType::i32);
  switch (spec.kind) {
    case OpKind::attention_forward: sig.out("y", q); return;
    case OpKind::attention_backward:
      sig.in("dy", q).out("dq", q).adds().out("dk", k).adds().out("dv", k).adds();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const SequencePoolDims& d) {
  const bool forward = spec.kind == OpKind::sequence_pool_forward;
  if (!forward && spec.kind != OpKind::sequence_pool_backward) wrong_dims(spec);
  const Shape x{d.N, d.T, d.F}, y{d.N, d.F};
  sig.in(forward ? "x" : "dy", forward ? x : y);
  if (d.lengths) sig.in("lengths", Shape{d.N}, DType::i32);
  sig.out(forward ? "y" : "dx", forward ? y : x);
  if (!forward) sig.adds();
}

void add_args(Signature& sig, const OpSpec& spec, const BroadcastDims& d) {
  const Shape w = d.shape.without_front();
  switch (spec.kind) {
    case OpKind::broadcast_add: sig.in("x", d.shape).in("w", w).parameter().out("y", d.shape); return;
    case OpKind::sum_samples: sig.in("dy", d.shape).out("dw", w).adds().wide(); return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const RnnDims& d) {
  const Shape x{d.N, d.T, d.F}, y{d.N, d.T, d.H}, state{d.N, d.H}, b{d.G() * d.H};
  const Shape w_x{d.G() * d.H, d.F}, w_h{d.G() * d.H, d.H};
  if (spec.kind != OpKind::rnn_forward && spec.kind != OpKind::rnn_backward) wrong_dims(spec);
  ECHELON_CHECK(d.first >= 0 && (d.first == 0 || !d.reverse), "a chunk from step {} on of a sequence run {}", d.first,
                d.reverse ? "backwards" : "onwards");
  sig.in("x", x).in("weight_x", w_x).parameter().in("weight_h", w_h).parameter();
  sig.in("bias_x", b).parameter().in("bias_h", b).parameter();
  if (d.initial) sig.in("h0", state);
  if (d.initial && d.has_c()) sig.in("c0", state);
  if (d.lengths) sig.in("lengths", Shape{d.N}, DType::i32);
  if (spec.kind == OpKind::rnn_forward) {
    sig.out("y", y).out("hn", state);
    if (d.has_c()) sig.out("cn", state);
    return;
  }
  ECHELON_CHECK(d.has_c() || !d.dcn, "the cell has no c");
  sig.in("y", y);
  if (d.dy) sig.in("dy", y);
  if (d.dhn) sig.in("dhn", state);
  if (d.dcn) sig.in("dcn", state);
  sig.out("dx", x).adds().out("dweight_x", w_x).adds().wide().out("dweight_h", w_h).adds().wide();
  sig.out("dbias_x", b).adds().wide().out("dbias_h", b).adds().wide();
  if (d.initial) sig.out("dh0", state).adds();
  if (d.initial && d.has_c()) sig.out("dc0", state).adds();
}

void add_args(Signature& sig, const OpSpec& spec, const RnnStepDims& d) {
  ECHELON_CHECK(d.t >= 0 && d.t < d.T, "step {} of {}", d.t, d.T);
  ECHELON_CHECK(d.begin >= 0 && d.begin + d.U <= d.H, "units [{}, {}) of {}", d.begin, d.begin + d.U, d.H);
  const Shape own{d.N, d.U}, whole{d.N, d.H}, wholes{d.N, d.T, d.H}, w{d.G() * d.U, d.H};
  const Shape sums{d.N, d.T, d.G() * d.U}, gates{d.N, d.T, d.P() * d.U};
  const auto lengths = [&] {
    if (d.lengths) sig.in("lengths", Shape{d.N}, DType::i32);
  };
  if (spec.kind == OpKind::rnn_step_forward) {
    sig.in("a", sums).in("weight_h", w).parameter().in("bias_h", Shape{d.G() * d.U}).parameter().in("h", whole);
    if (d.has_c()) sig.in("c", own);
    lengths();
    sig.out("h_next", own);
    if (d.has_c()) sig.out("c_next", own);
    sig.out("gates", gates).in_part();
    return;
  }
  if (spec.kind != OpKind::rnn_step_backward) wrong_dims(spec);
  sig.in("weight_h", w).parameter().in("gates", gates);
  if (d.cell == Cell::gru) sig.in("hs", wholes);
  if (d.has_c()) sig.in("c", own).in("c_next", own).in("dc_next", own);
  lengths();
  if (d.dy) sig.in("dy", wholes);
  sig.in("dh_next", whole).out("da", sums).in_part();
  if (d.cell == Cell::gru) sig.out("db", sums).in_part();
  sig.out("dh", whole);
  if (d.has_c()) sig.out("dc", own);
}

void add_args(Signature& sig, const OpSpec& spec, const PlaceStepDims& d) {
  if (spec.kind != OpKind::place_step) wrong_dims(spec);
  ECHELON_CHECK(d.t >= 0 && d.t < d.T, "step {} of {}", d.t, d.T);
  sig.in("x", Shape{d.N, d.F});
  if (d.lengths) sig.in("lengths", Shape{d.N}, DType::i32);
  sig.out("y", Shape{d.N, d.T, d.F}).in_part();
}

void add_args(Signature& sig, const OpSpec& spec, const EmbeddingDims& d) {
  const Shape rows{d.rows}, y{d.rows, d.F}, w{d.V, d.F};
  switch (spec.kind) {
    case OpKind::embedding_forward: sig.in("ids", rows, DType::i32).in("w", w).parameter().out("y", y); return;
    case OpKind::embedding_backward:
      sig.in("ids", rows, DType::i32).in("dy", y).out("dw", w).adds().wide();
      if (d.sparse) sig.out("touched", Shape{row_words(d.V)}, DType::i32).adds();
      return;
    default: wrong_dims(spec);
  }
}

}  // namespace echelon::inline device
