// What a step of a split model takes, by a model of time: layers' costs, links, bytes. For choosing between splits.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective/plan_time.hpp"
#include "config/schema.hpp"
#include "model/graph.hpp"
#include "parallel/mesh.hpp"
#include "parallel/split.hpp"

namespace echelon::inline parallel {

// Seconds of one step.
struct SplitPrice {
  double compute_s = 0;   // layers, and the optimiser's pass
  double between_s = 0;   // what travels between the ranks of a replica, and the wait of stages for each other
  double exchange_s = 0;  // between replicas, as far as back-propagation does not hide it
  double step_s() const { return compute_s + between_s + exchange_s; }
};

// What the ranks of a split are made of.
struct SplitCosts {
  std::vector<double> node_s;  // by node of the whole graph: of one sample, forward and backward
  Network network;
  double memory_bytes_per_s = 1e10;  // of the optimiser's pass
};

// A spatial shard with neighbours on both sides, where there is one.
int busiest_spatial_shard(const Mesh& mesh);

// `parts` by stage, of shard 0 and the busiest spatial shard; `micro_batch` samples each of batch.accumulation times.
// `hosts` by rank. A layer's part costs the share of its FLOPs. Stages take turns as in parallel/pipeline.hpp, so a
// step is all micro-batches' time on the slowest and the first one's (in a staircase its first chunk's) way through the
// others. Sums are priced as halving-doubling, gathers and gradients as rings; parts whose rings cross to other hosts
// share the card.
SplitPrice price_split(const Config& config, const Graph& whole, const std::vector<Part>& parts, const Mesh& mesh,
                       const std::vector<int>& hosts, std::int64_t micro_batch, const SplitCosts& costs);

}  // namespace echelon::inline parallel
