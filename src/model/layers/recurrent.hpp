// What a recurrent layer and a part of its units share.
#pragma once

#include <cstdint>

#include "model/layer.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

enum RecurrentInput : int { kSequence = 0, kState = 1 };
enum RecurrentOutput : int { kPlaces = 0, kLastH = 1, kLastC = 2 };

struct RecurrentForm {
  Cell cell;
  std::int64_t H;
  bool reverse;
  std::int64_t first;                                  // step of the whole sequence
  bool loads_recurrent_state, stores_recurrent_state;  // this chunk of it
  bool has_c() const { return cell == Cell::lstm; }
  std::size_t states() const { return has_c() ? 2 : 1; }
};

inline bool has_lengths(const Lowering& lowering) {
  return lowering.inputs() > 1 && lowering.input_shape(lowering.inputs() - 1).rank() == 1;
}
inline bool begins_with_inputs(const Lowering& lowering) {
  return lowering.inputs() - (has_lengths(lowering) ? 1 : 0) > 1;
}
// .. or with the last batch's states, not with zeros.
inline bool begins_with_states(const Lowering& lowering, const RecurrentForm& form) {
  return form.loads_recurrent_state || begins_with_inputs(lowering);
}
inline Shape state_shape(const Lowering& lowering, const RecurrentForm& form) {
  return Shape{lowering.batch(), form.H};
}

// Where recurrent states are during a batch: h (0) and c (1) as it begins.
inline TensorRef initial_state(Lowering& lowering, const RecurrentForm& form, int state) {
  return lowering.kept(state == 0 ? "h0" : "c0", state_shape(lowering, form), lowering.dtype());
}
// From the last batch, to where this one begins.
void load_recurrent_state(Lowering& lowering, const RecurrentForm& form);
// The last states of this batch, for the next.
void store_recurrent_state(Lowering& lowering, const RecurrentForm& form);

}  // namespace echelon::inline model
