// SPDX-License-Identifier: Apache-2.0
// Step t of the units [begin, begin + U) of a recurrent layer (rnn.hpp), computed from the whole previous state h and
// the sums a = weight_x x + bias_x of all steps.
//
// kind                  inputs and outputs
//   rnn_step_forward    a(N,T,G*U) weight_h(G*U,H) bias_h(G*U) h(N,H) [c(N,U)] [lengths]
//                       -> h_next(N,U) [c_next(N,U)] gates(N,T,P*U) (in part)
//   rnn_step_backward   weight_h gates [hs(N,T,H)] [c c_next dc_next (N,U)] [lengths] [dy(N,T,H)] dh_next(N,H)
//                       -> da(N,T,G*U) (in part) [db(N,T,G*U) (in part)] dh(N,H) [dc(N,U)]
//
// h_next and c_next are those of these units. `gates` keeps for the backward pass: i f g o, or r z n b_n, after their
// functions, or h'; 0 where the state is kept. Backward: dh_next is the gradient of the whole state after the step; da
// and db are those of a and b = weight_h h + bias_h (db and hs, the states before every step, only for gru; otherwise
// db equals da); dh is these units' part of the gradient of the previous state, to be summed over all units.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"
#include "device/ops/rnn.hpp"

namespace echelon::inline device {

struct RnnStepDims {
  static constexpr bool kInHalves = false;
  std::int64_t N, T, H, U;
  std::int64_t begin = 0, t = 0;
  Cell cell = Cell::lstm;
  bool lengths = false;
  std::int64_t first = 0;  // as in RnnDims
  bool dy = true;
  std::int64_t G() const { return gates_of(cell); }
  std::int64_t P() const { return parts_of(cell); }
  bool has_c() const { return cell == Cell::lstm; }
  friend bool operator==(const RnnStepDims&, const RnnStepDims&) = default;

  void common(OpDescription& op) const {
    op.require(t >= 0 && t < T, "step {} is not in [0, {})", {t, T});
    op.require(begin >= 0 && begin + U <= H, "units [{}, {}) are not in [0, {})", {begin, begin + U, H});
    op.word(cell_name(cell)).extents({{"N", N}, {"T", T}}).word("step", t).extents({{"H", H}});
    op.word("units", begin).word("to", begin + U);
    op.flag(lengths, "lengths").flag(lengths && first != 0, "from", first).flag(!dy, "no dy");
    op.one_step().flops(2.0 * static_cast<double>(N * G() * U) * static_cast<double>(H));
  }
  void rnn_step_forward(OpDescription& op) const {
    op.in("a", {N, T, G() * U}).in("weight_h", {G() * U, H}).parameter().in("bias_h", {G() * U}).parameter();
    op.in("h", {N, H});
    if (has_c()) op.in("c", {N, U});
    op.lengths(lengths, N).out("h_next", {N, U});
    if (has_c()) op.out("c_next", {N, U});
    op.out("gates", {N, T, P() * U}).in_part();
  }
  void rnn_step_backward(OpDescription& op) const {
    op.in("weight_h", {G() * U, H}).parameter().in("gates", {N, T, P() * U});
    if (cell == Cell::gru) op.in("hs", {N, T, H});
    if (has_c()) op.in("c", {N, U}).in("c_next", {N, U}).in("dc_next", {N, U});
    op.lengths(lengths, N);
    if (dy) op.in("dy", {N, T, H});
    op.in("dh_next", {N, H}).out("da", {N, T, G() * U}).in_part();
    if (cell == Cell::gru) op.out("db", {N, T, G() * U}).in_part();
    op.out("dh", {N, H});
    if (has_c()) op.out("dc", {N, U});
  }
};

}  // namespace echelon::inline device
