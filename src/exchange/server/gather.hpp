// SPDX-License-Identifier: Apache-2.0
// Gathers data that each server holds for its own parts, such as optimiser states before a checkpoint.
#pragma once

#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "device/arenas.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

struct ServedBucket {
  ArenaRange range;
  ArenaRange own;                    // the part that this rank serves
  std::shared_ptr<const Plan> plan;  // sends every server's part to all ranks (make_pull)
  int channel = 0;
};

// `data` is host memory of the bucket's range, whose own part is ready once `after` has passed. Collective; blocking.
void gather_bucket(Engine& engine, const ServedBucket& bucket, void* data, DType dtype,
                   std::shared_ptr<const Event> after);
// Gathers all states of the optimiser, whose arenas hold the own parts. Collective; blocking.
void gather_states(Engine& engine, Arenas& arenas, Optimiser& optimiser, const std::vector<ServedBucket>& buckets);

}  // namespace echelon::inline exchange
