// All that follows from the config, the data and the number of ranks before any memory is touched: what every rank
// works out for itself and agrees on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/derive.hpp"
#include "config/schema.hpp"
#include "data/dataset.hpp"
#include "data/shard_plan.hpp"
#include "model/graph.hpp"

namespace echelon {

struct RunPlan {
  int ranks = 1;
  BatchPlan batch;  // by replica of the plan: the ranks, or data.as_replicas on one rank
  Dataset train;
  std::optional<Dataset> test;
  ShardPlan shards;
  Graph graph;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;  // of the whole run, earlier attempts included

  // Replicas whose samples this rank takes: its own, or all of the plan's where it stands for them.
  std::vector<int> sources(int rank) const;
};

// Throws ConfigError (more ranks than samples, batch arithmetic, model) and DataError.
RunPlan plan_run(const Config& config, int ranks);

// The plan of a whole pass over `samples` records in order, in batches of `batch` on each of `replicas`; the last ones
// are filled up with weight 0.
ShardPlan evaluation_plan(const Dataset& dataset, int replicas, std::int64_t batch);

}  // namespace echelon
