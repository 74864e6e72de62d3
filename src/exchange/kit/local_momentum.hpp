// SPDX-License-Identifier: Apache-2.0
// Momentum that each replica applies to its own gradients before they are coded and summed (the momentum correction of
// Lin et al.: Deep Gradient Compression, ICLR 2018): what a codec leaves out of a message is then a part of an update,
// to which momentum was already applied. For weights w, the gradient g and the velocity u of a replica:
//
//   g' = g + share decay w     share: the replica's part of the step's samples; the shares of all replicas add up to 1
//   u  = momentum u + g'
//   g  = nesterov ? g' + momentum u : u
//
// All of this is linear, so that the sums over replicas, uncoded, are the directions of rule `sgd` for the summed
// gradient. The optimiser subtracts them times the learning rate (rule_of: plain_sgd). Running statistics stay as they
// are.
//
// Memory: an arena on the device, instead of the optimiser's state. State: "local_momentum/<parameter>" by replica;
// another number of replicas reads the sum, divided.
#pragma once

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/kit/residual.hpp"

namespace echelon::inline exchange {

class LocalMomentum {
 public:
  // The arenas must outlive this object.
  LocalMomentum(const OptimiserConfig& config, Arenas& arenas);

  // Replaces the gradients of a range of the arenas, once per step; on a device with a queue it only enqueues.
  void apply(ArenaRange range, double share);
  void visit_state(StateVisitor& visitor, ReplicaPosition position);

 private:
  double momentum_, decay_;
  bool nesterov_;
  Arenas& arenas_;
  Residual velocity_;
};

}  // namespace echelon::inline exchange
