// SPDX-License-Identifier: Apache-2.0
// The memory that exchange.strategy and exchange.codec keep on a rank in addition to weights, gradients and optimiser
// states, in units of arenas (the bytes of the weights). Not counted: pinned memory in which gradients of a GPU are
// staged, running statistics beside coded messages, and memory that does not grow with the weights.
#pragma once

#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::inline comm {

struct ExchangeArenas {
  double device = 0;  // in the device's memory
  double host = 0;   // in host memory, on the rank that has most: weights and residuals of servers and codecs, messages
  double own = 0;    // in a checkpoint: data that each replica has separately
  double whole = 0;  // in a checkpoint: common data of all replicas in addition to weights, states and `device`
};

// A function such as exchange_arenas of exchange/entry.hpp, which rooms beside exchange/ are given. `replicas` is the
// number of replicas that train; the optimiser has the config's rule; `parameters` are the rank's.
using CountArenas = ExchangeArenas (*)(const Config& config, const ParameterSet& parameters, int replicas);

}  // namespace echelon::inline comm
