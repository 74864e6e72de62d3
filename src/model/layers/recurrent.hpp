// SPDX-License-Identifier: Apache-2.0
// Definitions that a recurrent layer (layers/recurrent.cpp) and a part of its units (splits/recurrent_part.cpp) share.
// Dimensions: N samples, T steps, F input features, H units of the state.
#pragma once

#include <cstdint>

#include "model/layer.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

enum RecurrentInput : int { kSequence = 0, kState = 1 };             // (N, T, F); (N, H), followed by c for lstm
enum RecurrentOutput : int { kPlaces = 0, kLastH = 1, kLastC = 2 };  // (N, T, H); (N, H); (N, H), only for lstm

struct RecurrentForm {
  Cell cell;
  std::int64_t H;
  bool reverse;
  std::int64_t first;                                  // the first step of this time chunk in the whole sequence
  bool loads_recurrent_state, stores_recurrent_state;  // this chunk begins or ends a sequence with `carry`
  bool has_c() const { return cell == Cell::lstm; }
  std::size_t states() const { return has_c() ? 2 : 1; }
};

inline bool has_lengths(const Lowering& lowering) {
  return lowering.inputs() > 1 && lowering.input_shape(lowering.inputs() - 1).rank() == 1;
}
inline bool begins_with_inputs(const Lowering& lowering) {
  return lowering.inputs() - (has_lengths(lowering) ? 1 : 0) > 1;
}
// Whether the states before the first step are given or are those of the last batch, instead of zeros.
inline bool begins_with_states(const Lowering& lowering, const RecurrentForm& form) {
  return form.loads_recurrent_state || begins_with_inputs(lowering);
}
inline Shape state_shape(const Lowering& lowering, const RecurrentForm& form) {
  return Shape{lowering.batch(), form.H};
}

// With loads_recurrent_state, returns the state h (0) or c (1) before the first step, a kept tensor (N, H).
inline TensorRef initial_state(Lowering& lowering, const RecurrentForm& form, int state) {
  return lowering.kept(state == 0 ? "h0" : "c0", state_shape(lowering, form), lowering.dtype());
}
// Copies the states that the last batch ended with into initial_state.
void load_recurrent_state(Lowering& lowering, const RecurrentForm& form);
// Copies the final states of this batch into the program's states, for the next batch.
void store_recurrent_state(Lowering& lowering, const RecurrentForm& form);

}  // namespace echelon::inline model
