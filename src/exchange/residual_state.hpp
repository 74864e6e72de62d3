// How residuals of replicas are shown to checkpoints, so that any number of replicas can resume from them.
#pragma once

#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "comm/codec/codec.hpp"
#include "device/arenas.hpp"

namespace echelon::inline exchange {

struct ReplicaPosition {
  int rank = 0;
  int ranks = 1;  // that have something; others have an empty part
};

// How a visitor sees a parameter's values that differ between replicas: a row of the tensor of all replicas; for
// another number of them summed and divided.
StateTensor replica_tensor(std::string_view name, void* data, DType dtype, const Parameter& parameter,
                           ReplicaPosition place);

// An arena that is equal on all replicas, as "<prefix>/<name>"; slices where the parameters are.
void visit_whole(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena);
// A few numbers that differ by replica; for another number of replicas their means, or zeros. Where a checkpoint has
// none of that name, zeros.
void visit_by_replica(StateVisitor& visitor, std::string_view name, std::vector<double>& values, ReplicaPosition place,
                      OtherK other_k = OtherK::sum_and_divide);

// The thresholds that codecs remember (Codec::tau), as `visit_by_replica`; for another number of ranks they begin anew.
// Null: a codec that other ranks have in this place.
void visit_taus(StateVisitor& visitor, std::string_view name, const std::vector<Codec*>& codecs, ReplicaPosition place);

}  // namespace echelon::inline exchange
