// What exchange.strategy and exchange.codec keep on a rank beside weights, gradients and optimiser states, counted in
// arenas: bytes of the weights. Not counted: pinned memory that gradients of a GPU are staged in, running statistics
// beside coded messages, and what does not grow with the weights.
#pragma once

#include "config/schema.hpp"

namespace echelon::inline parallel {

struct ExchangeArenas {
  double device = 0;  // in the device's memory
  double host = 0;   // in host memory, of the rank that has most: weights and residuals of servers and codecs, messages
  double own = 0;    // of a checkpoint: what each replica has for itself
  double whole = 0;  // of a checkpoint: what all replicas have together beside weights, states and `device`
};

// `replicas`: those that train; an optimiser of the config's rule.
ExchangeArenas exchange_arenas(const Config& config, int replicas);

}  // namespace echelon::inline parallel
