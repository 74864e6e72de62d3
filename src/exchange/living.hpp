// Weights of the ranks that are left of a run (Rescues). Rare, and through host memory.
#pragma once

#include "comm/group.hpp"
#include "device/arenas.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

// The weights of every rank become their mean over the group, summed in f64: the same bits everywhere. Collective.
void average_weights(Group& living, Arenas& arenas);
// This range of the weights of every rank becomes that of rank `root` of the group. Collective.
void broadcast_weights(Group& living, Arenas& arenas, ArenaRange range, int root);
// Likewise this range of every state of the optimiser. Collective.
void broadcast_states(Group& living, Arenas& arenas, Optimiser& optimiser, ArenaRange range, int root);

}  // namespace echelon::inline exchange
