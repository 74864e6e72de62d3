// SPDX-License-Identifier: Apache-2.0
// Passes over a replica's whole arenas, for strategies that exchange weights. Between two backward passes the gradient
// arena is free and serves as the buffer of sums over the replicas.
//
// Every pass is enqueued on the device; a pass that returns a number waits for it. Norms leave out running statistics.
#pragma once

#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "device/arenas.hpp"
#include "exchange/residual_state.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

class ArenaPass {
 public:
  explicit ArenaPass(Arenas& arenas);

  // Allocates zeroed device memory of the arena's size. Throws MemoryError above the device's limit, which names `tag`.
  Memory arena(std::string_view tag) const;
  void copy(void* to, const void* from) const;
  void copy_weights_to(Memory& arena) const { copy(arena.data(), arenas_.weights_at(0)); }
  void clear(void* arena) const;

  // buffer <- share * (values - anchor); a null `anchor` means 0.
  void put_share(double share, const void* values, const void* anchor) const;
  // values <- values + factor * buffer
  void add_buffer(void* values, double factor) const;
  // buffer <- buffer + values
  void add_to_buffer(const void* values) const;
  // buffer <- anchor + factor * (buffer - anchor), except for running statistics
  void stretch_buffer(double factor, const Memory& anchor) const;
  // values <- values + factor * more
  void add(void* values, const void* more, double factor = 1) const;
  // values <- factor * values
  void scale(void* values, double factor) const;
  // values <- buffer
  void take(void* values) const { copy(values, arenas_.gradients_at(0)); }
  // Returns |values - buffer| / |buffer|, where 0 / 0 = 0. Leaves values - buffer in `values`.
  double distance_from_buffer(void* values) const;

  // Takes an outer step by D = buffer - anchor, except for running statistics:
  //   heavy ball   velocity <- momentum * velocity + rate * D;  buffer <- anchor + velocity
  //   nesterov     velocity <- momentum * velocity + D;  buffer <- anchor + rate * (D + momentum * velocity)
  struct OuterFactors {
    double momentum = 0, rate = 1;
    bool nesterov = false;
  };
  void step_outwards(OuterFactors factors, const Memory& anchor, Memory& velocity) const;

  // Visits an arena that is equal on all replicas, as "<prefix>/<parameter>".
  void visit_whole(StateVisitor& visitor, std::string_view prefix, const Memory& arena) const;
  // Visits an arena that differs between replicas.
  void visit_by_replica(StateVisitor& visitor, std::string_view prefix, void* arena, ReplicaPosition position,
                        OtherK other_k) const;
  // Visits optimiser states that differ between replicas, as "strategy/local_<n>/<parameter>". If a checkpoint lacks
  // them or has another number of replicas, they stay those of its first replica, which the optimiser's own state
  // holds.
  void visit_local_states(StateVisitor& visitor, const Optimiser& optimiser, ReplicaPosition position) const;

 private:
  void* buffer() const { return arenas_.gradients_at(0); }
  void* at(void* arena, std::int64_t elem) const;
  const void* at(const void* arena, std::int64_t elem) const;

  Arenas& arenas_;
  VectorOps& ops_;
  std::size_t elems_;
  std::vector<ArenaRange> weights_;  // runs of parameters that are not running statistics
};

}  // namespace echelon::inline exchange
