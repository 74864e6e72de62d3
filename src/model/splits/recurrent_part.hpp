// SPDX-License-Identifier: Apache-2.0
// Some units of a recurrent layer (LayerSplit::on_states).
#pragma once

#include "model/layers/recurrent.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// The cuts at which the ranks of a split layer exchange states (N, H): `gathered` after every step forward, `summed`
// before every step backward.
struct StateCuts {
  int gathered, summed;
};

// Returns the units `units` of the state of `whole`, a recurrent layer of this form; inputs and outputs are those of
// `whole`. From its tensors (G*H, F), (G*H, H) and (G*H), with G gates, the part has the rows of its units in each
// gate: (G, U, F), (G, U, H) and (G, U) of (G, H, ..), where U = units.count().
LayerPtr make_recurrent_part(LayerPtr whole, const RecurrentForm& form, const Units& units, StateCuts cuts);

}  // namespace echelon::inline model
