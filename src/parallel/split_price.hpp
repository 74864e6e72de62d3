// SPDX-License-Identifier: Apache-2.0
// The predicted step time of a split model, from the costs of layers, the links and the bytes of its cuts, for the
// choice between splits (parallel/choose.hpp).
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
  double compute_s = 0;   // layers of the slowest stage, and the optimiser's pass
  double between_s = 0;   // exchanges between the ranks of a replica, and the bubble
  double exchange_s = 0;  // the gradients' all-reduce, except for its overlap with back-propagation
  double step_s() const { return compute_s + between_s + exchange_s; }
};

// Measured or counted speeds from which prices are computed.
struct SplitCosts {
  std::vector<double> node_s;  // by node of the whole graph: seconds of one sample, forward and backward
  Network network;
  double memory_bytes_per_s = 1e10;  // memory bandwidth in the optimiser's pass
  double card_bytes = 0;             // memory of the rank's card; 0: on the host, where it is not limited
};

// The spatial shard whose price and footprint stand for all: one with neighbours on both sides, if there is one.
int busiest_spatial_shard(const Mesh& mesh);

// `parts` by stage, of shard 0 and the busiest spatial shard; `hosts` by rank. A step has m = batch.accumulation
// micro-batches of `micro_batch` samples and c time chunks. With compute f_s and exchange t_s of stage s for one
// micro-batch (a part of a layer costs its share of the layer's FLOPs):
//   compute_s + between_s = m max(f_s + t_s) + (sum of (f_s + t_s) - max(f_s + t_s)) / c + optimiser
//   exchange_s            = max over s of (ring all-reduce of the stage's gradients - 2/3 f_s), at least 0; nothing is
//                           subtracted with exchange.overlap = "none"
// In t_s sums are priced as halving-doubling, gathers as rings, messages as latency + bytes / bandwidth, on the links
// inside a host if the group is on one. Between hosts, model groups share the link of a host.
SplitPrice price_split(const Config& config, const Graph& whole, const std::vector<Part>& parts, const Mesh& mesh,
                       const std::vector<int>& hosts, std::int64_t micro_batch, const SplitCosts& costs);

}  // namespace echelon::inline parallel
