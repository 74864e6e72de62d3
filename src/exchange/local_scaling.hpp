// SPDX-License-Identifier: Apache-2.0
// The loss scale of replicas that take separate steps: each adapts its own scale by its own gradients, so that a
// checkpoint holds one scale per replica.
#pragma once

#include <string>

#include "base/state.hpp"
#include "exchange/residual_state.hpp"
#include "optim/loss_scale.hpp"

namespace echelon::inline exchange {

// Visits "strategy/loss_scale" + part, shape (replicas, scalars of LossScale); nothing with one replica or without
// scaling. If the number of replicas has changed, all continue with the first replica's scale, which the optimiser
// saves (LossScale::visit_state).
void visit_local_scaling(StateVisitor& visitor, LossScale& scale, ReplicaPosition position,
                         const std::string& part = {});

}  // namespace echelon::inline exchange
