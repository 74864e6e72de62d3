// Brings together what lies in parts on servers: before a checkpoint, optimiser states of the parts that each updates.
#pragma once

#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "device/arenas.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

struct ServedBucket {
  ArenaRange range;
  ArenaRange own;                    // what this rank serves of it
  std::shared_ptr<const Plan> plan;  // of what each server has of it, to all ranks (make_pull)
  int channel = 0;
};

// Collective. `data`: host memory of the bucket's range, of which the own part is there once `after` has passed.
void gather_bucket(Engine& engine, const ServedBucket& bucket, void* data, DType dtype,
                   std::shared_ptr<const Event> after);
// Collective: all states of the optimiser, whose own parts are in its arenas.
void gather_states(Engine& engine, Arenas& arenas, Optimiser& optimiser, const std::vector<ServedBucket>& buckets);

}  // namespace echelon::inline exchange
