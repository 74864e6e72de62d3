// Batch arithmetic: how the samples of a step are divided among replicas and micro-batches. Pure functions of the
// config, the number of replicas k and of samples; equal on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct BatchPlan {
  std::int64_t global = 0;                // samples a step
  std::int64_t accumulation = 1;          // micro-batches of a replica a step; train.reproducible: micro-shards
  std::vector<std::int64_t> per_replica;  // samples a step, by replica; sums to global
  std::vector<std::int64_t> micro;        // per_replica / accumulation
};

// Throws ConfigError with the nearest valid values where global does not divide by replicas x accumulation (or by the
// shares), where there are more replicas than samples, where batch.shares has another length, or where data.ragged =
// "drop" would leave no step. batch.global = 0: global is `samples`, rounded up to a divisible number where data.ragged
// = "zero_weight". batch.scale_with_replicas: global is batch.global * k.
BatchPlan derive_batch(const Config& config, int replicas, std::int64_t samples);

// data.balance = "speed": a replica's share of a step is at most so many times what it has at first.
inline constexpr std::int64_t kMostShare = 2;

// The same; with data.as_replicas = n the plan of n replicas, whose samples the one replica processes in turn.
BatchPlan plan_batch(const Config& config, int replicas, std::int64_t samples);

// Samples of test data in a forward pass of each rank, by rank; ranks without samples have no entry. At most
// evaluate.batch a rank, or over all ranks together where data.order = "stream".
std::vector<std::int64_t> evaluation_batches(const Config& config, std::int64_t samples, int ranks);

// train.reproducible: ConfigErrors for keys with which the bits of a step would depend on the number of replicas.
void check_reproducible(const Config& config);
// Micro-shards of each replica, micro_shards / replicas: ConfigError unless `replicas` is a power of two and at most
// train.micro_shards.
std::int64_t micro_shards_of_each(const Config& config, std::int64_t replicas);

// All refusals that need neither the data nor the number of ranks: missing model or data, numbers that exclude each
// other, keys without a use (unfit.hpp), choices that do not go together (combinations.hpp). ConfigError for the first,
// with file:line:column and the nearest valid value. load_config has called it.
void check_combinations(const Config& config);

}  // namespace echelon::inline config
