// SPDX-License-Identifier: Apache-2.0
// Batch arithmetic: divides the samples of a step among replicas and micro-batches. All functions are pure functions of
// the config, the number of replicas k and the number of samples, so that every rank gets the same results.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct BatchPlan {
  std::int64_t global = 0;                // samples per step
  std::int64_t accumulation = 1;          // micro-batches per replica and step; train.reproducible: micro-shards
  std::vector<std::int64_t> per_replica;  // samples per step of each replica; sums to global
  std::vector<std::int64_t> micro;        // per_replica / accumulation
};

// Throws ConfigError, with the nearest valid values, if global is not divisible by replicas x accumulation (or by the
// shares), if there are more replicas than samples, if batch.shares has the wrong length, or if data.ragged = "drop"
// would leave no step. batch.global = 0: global is `samples`, rounded up to a divisible number if data.ragged =
// "zero_weight". batch.scale_with_replicas: global is batch.global * k.
BatchPlan derive_batch(const Config& config, int replicas, std::int64_t samples);

// data.balance = "speed": the largest factor by which a replica's share of a step may exceed an equal share.
inline constexpr std::int64_t kMostShare = 2;

// The same, but data.as_replicas = n gives the plan of n replicas, whose samples one replica processes in turn.
BatchPlan plan_batch(const Config& config, int replicas, std::int64_t samples);

// Returns the samples of test data per forward pass, by rank; ranks without samples have no entry. At most
// evaluate.batch per rank, or over all ranks together if data.order = "stream".
std::vector<std::int64_t> evaluation_batches(const Config& config, std::int64_t samples, int ranks);

// train.reproducible: throws ConfigError for keys that would make the bits of a step depend on the number of replicas.
void check_reproducible(const Config& config);
// Returns the micro-shards of each replica, micro_shards / replicas. Throws ConfigError unless `replicas` is a power of
// two and at most train.micro_shards.
std::int64_t micro_shards_of_each(const Config& config, std::int64_t replicas);

}  // namespace echelon::inline config
