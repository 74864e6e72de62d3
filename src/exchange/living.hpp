// SPDX-License-Identifier: Apache-2.0
// Weights and states of the remaining ranks after a run has lost ranks (Rescues). This is rare, so that everything goes
// through host memory. All functions are collective over the group and blocking.
#pragma once

#include "comm/group.hpp"
#include "device/arenas.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

// Replaces the weights of every rank by their mean over the group, summed in f64, with the same bits on all ranks.
void average_weights(Group& living, Arenas& arenas);
// Replaces this range of the weights of every rank by that of rank `root` of the group.
void broadcast_weights(Group& living, Arenas& arenas, ArenaRange range, int root);
// Replaces this range of every optimiser state by that of rank `root` of the group.
void broadcast_states(Group& living, Arenas& arenas, Optimiser& optimiser, ArenaRange range, int root);

}  // namespace echelon::inline exchange
