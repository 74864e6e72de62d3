// SPDX-License-Identifier: Apache-2.0
// A recurrent layer: one layer, one direction, one chunk of time.
//
// kind             inputs and outputs
//   rnn_forward    x weight_x weight_h bias_x bias_h [h0 [c0]] [lengths]
//                  -> y hn [cn] (+ saved)
//   rnn_backward   x weight_x weight_h bias_x bias_h [h0 [c0]] [lengths] y [dy] [dhn] [dcn] (+ saved)
//                  -> dx dweight_x dweight_h dbias_x dbias_h [dh0 [dc0]] (all add)
//
// x (N, T, F), y (N, T, H), states h, c (N, H), weight_x (G*H, F), weight_h (G*H, H), biases (G*H), lengths (N) i32 in
// [0, T]. With a = weight_x x_t + bias_x and b = weight_h h + bias_h in G parts, where h is the previous state:
//
//   tanh, relu  G = 1            h' = f(a + b)
//   lstm        G = 4: i f g o   c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
//   gru         G = 3: r z n     r, z = sigmoid(a + b), n = tanh(a_n + r b_n), h' = (1 - z) n + z h
//
// as PyTorch and cuDNN define them (Hochreiter, Schmidhuber 1997, with Gers' forget gate; Cho et al. 2014). y_t = h';
// hn, cn are the last states. At t >= length the state is kept and y_t = 0; `reverse` runs from the last step to the
// first. h0, c0, dy, dhn and dcn are 0 if they are not given. x may begin with step `first` of a longer sequence:
// lengths are then those of the whole sequence, and the state is kept at first + t >= length.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"

namespace echelon::inline device {

enum class Cell : std::uint8_t { tanh, relu, lstm, gru };
constexpr const char* cell_name(Cell cell) {
  return cell == Cell::tanh ? "tanh" : cell == Cell::relu ? "relu" : cell == Cell::lstm ? "lstm" : "gru";
}
constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
// Number of values that a step keeps per unit for its backward pass.
constexpr std::int64_t parts_of(Cell cell) { return cell == Cell::lstm || cell == Cell::gru ? 4 : 1; }

struct RnnDims {
  std::int64_t N, T, F, H;
  Cell cell = Cell::lstm;
  bool reverse = false;                      // runs from the last step to the first
  bool initial = false;                      // h0 [c0] are given
  bool lengths = false;                      // lengths are given; else all are T
  std::int64_t first = 0;                    // step of the whole sequence with which x begins; not with reverse
  bool dy = true, dhn = false, dcn = false;  // backward: which gradients arrive
  std::int64_t G() const { return gates_of(cell); }
  bool has_c() const { return cell == Cell::lstm; }
  friend bool operator==(const RnnDims&, const RnnDims&) = default;

  void common(OpDescription& op) const {
    op.require(first >= 0 && (first == 0 || !reverse), "a chunk cannot begin at step {} of a sequence that is run {}",
               {first, reverse ? "backwards" : "forwards"});
    op.word(cell_name(cell)).extents({{"N", N}, {"T", T}, {"F", F}, {"H", H}});
    op.flag(reverse, "reverse").flag(initial, "initial").flag(lengths, "lengths");
    op.flag(lengths && first != 0, "from", first);
    op.in("x", {N, T, F}).in("weight_x", weight_x()).parameter().in("weight_h", weight_h()).parameter();
    op.in("bias_x", {G() * H}).parameter().in("bias_h", {G() * H}).parameter();
    if (initial) op.in("h0", {N, H});
    if (initial && has_c()) op.in("c0", {N, H});
    op.lengths(lengths, N);
  }
  void rnn_forward(OpDescription& op) const {
    op.out("y", {N, T, H}).out("hn", {N, H}).flops(2.0 * products());
    if (has_c()) op.out("cn", {N, H});
  }
  void rnn_backward(OpDescription& op) const {
    op.require(has_c() || !dcn, "this cell has no state c");
    op.flag(!dy, "no dy").flag(dhn, "dhn").flag(dcn, "dcn").flops(4.0 * products());
    op.in("y", {N, T, H});
    if (dy) op.in("dy", {N, T, H});
    if (dhn) op.in("dhn", {N, H});
    if (dcn) op.in("dcn", {N, H});
    op.out("dx", {N, T, F}).adds();
    op.out("dweight_x", weight_x()).adds().wide().out("dweight_h", weight_h()).adds().wide();
    op.out("dbias_x", {G() * H}).adds().wide().out("dbias_h", {G() * H}).adds().wide();
    if (initial) op.out("dh0", {N, H}).adds();
    if (initial && has_c()) op.out("dc0", {N, H}).adds();
  }

 private:
  Shape weight_x() const { return {G() * H, F}; }
  Shape weight_h() const { return {G() * H, H}; }
  double products() const {
    return static_cast<double>(N * T) * static_cast<double>(G() * H) * static_cast<double>(F + H);
  }
};

}  // namespace echelon::inline device
