// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/gather.hpp"

#include <utility>

#include "exchange/staging.hpp"

namespace echelon::inline exchange {

void gather_bucket(Engine& engine, const ServedBucket& bucket, void* data, DType dtype,
                   std::shared_ptr<const Event> after) {
  engine.run({.plan = bucket.plan,
              .data = data,
              .dtype = dtype,
              .channel = bucket.channel,
              .priority = 0,
              .after = std::move(after)});
}

void gather_states(Engine& engine, Arenas& arenas, Optimiser& optimiser, const std::vector<ServedBucket>& buckets) {
  for (int s = 0; s < optimiser.states(); ++s) {
    Staging states(arenas.device(), optimiser.state(s), arenas.elems(), arenas.dtype());
    for (const ServedBucket& bucket : buckets) {
      gather_bucket(engine, bucket, states.at(bucket.range.begin), arenas.dtype(), states.fetch(bucket.own));
      states.store(bucket.range);
    }
  }
}

}  // namespace echelon::inline exchange
