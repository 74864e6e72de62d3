// Batch arithmetic: what follows from the config once the number of replicas and of samples is known.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct BatchPlan {
  std::int64_t global = 0;  // samples a step
  std::int64_t accumulation = 1;
  std::vector<std::int64_t> per_replica;  // samples a step, by replica; sums to global
  std::vector<std::int64_t> micro;        // per_replica / accumulation
};

// Throws ConfigError with the nearest valid values where global does not divide by replicas x accumulation (or by the
// shares), or where there are more replicas than samples.
BatchPlan derive_batch(const Config& config, int replicas, std::int64_t samples);

// The same with an entry for each replica that a rank stands for (data.as_replicas).
BatchPlan plan_batch(const Config& config, int replicas, std::int64_t samples);

// Samples of test data that each rank takes at a time, by rank; ranks that there are no samples for have no entry.
// evaluate.batch at most on each; over all ranks together where data.order = "stream".
std::vector<std::int64_t> evaluation_batches(const Config& config, std::int64_t samples, int ranks);

// train.reproducible: ConfigErrors for what would let the bits depend on the number of replicas.
void check_reproducible(const Config& config);
// Micro-shards of each of `replicas`: ConfigError unless that is a power of two of at most train.micro_shards.
std::int64_t micro_shards_of_each(const Config& config, std::int64_t replicas);

// Combinations that are refused (device x dtype, exchange x priority, ..): ConfigErrors with the reason.
void check_combinations(const Config& config);

}  // namespace echelon::inline config
