// SPDX-License-Identifier: Apache-2.0
// Shows the residuals of replicas to checkpoints, so that any number of replicas can resume from them.
#pragma once

#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "comm/codec/codec.hpp"
#include "device/arenas.hpp"

namespace echelon::inline exchange {

struct ReplicaPosition {
  int rank = 0;
  int ranks = 1;  // ranks that have a row; later ranks have an empty part
};

// Describes values of a parameter that differ between replicas as one row of a tensor with a row per replica. With
// another number of replicas each reads the sum of the rows divided by the new number (OtherK::sum_and_divide).
StateTensor replica_tensor(std::string_view name, void* data, DType dtype, const Parameter& parameter,
                           ReplicaPosition position);

// Visits an arena that is equal on all replicas, as "<prefix>/<parameter>", with slices for sliced parameters.
void visit_whole(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena);
// Visits a few numbers that differ between replicas. They become zeros if the checkpoint lacks the name; `other_k` says
// what another number of replicas reads.
void visit_by_replica(StateVisitor& visitor, std::string_view name, std::vector<double>& values,
                      ReplicaPosition position, OtherK other_k = OtherK::sum_and_divide);

// Visits the thresholds that codecs remember (Codec::tau) as `visit_by_replica` does. With another number of ranks they
// start anew. A null codec stands for one that only other ranks have.
void visit_taus(StateVisitor& visitor, std::string_view name, const std::vector<Codec*>& codecs,
                ReplicaPosition position);

}  // namespace echelon::inline exchange
