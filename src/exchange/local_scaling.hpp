// The loss scale of replicas that take steps of their own: each adapts its own, by its own gradients, so that a
// checkpoint holds one of each replica.
#pragma once

#include <string>

#include "base/state.hpp"
#include "exchange/residual_state.hpp"
#include "optim/loss_scale.hpp"

namespace echelon::inline exchange {

// "strategy/loss_scale" + part, (replicas, scalars of LossScale); nothing with one replica or without scaling. For
// another number of replicas all go on with the scale of the first, which the optimiser saves (LossScale::visit_state).
void visit_local_scaling(StateVisitor& visitor, LossScale& scale, ReplicaPosition place, const std::string& part = {});

}  // namespace echelon::inline exchange
