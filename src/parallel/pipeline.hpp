// SPDX-License-Identifier: Apache-2.0
// Pipeline parallelism: the graph of one stage, the messages between stages, and the order of the micro-batches.
//
// A value is sent directly from the stage that computes it to each stage that reads it, once per micro-batch, and its
// gradient is sent back the same way. The stage that computed the value adds the gradients of all readers, as in the
// whole graph.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// The messages of all stages, in the order in which values are computed. `stages` by node, as assign_stages returns
// them. The index of a cut is its number in the graphs of the stages.
std::vector<Cut> cuts_between(const Graph& graph, const std::vector<int>& stages);

// The nodes of one stage with their names and parameters, a send behind each value that is sent and a receive before
// the first reader of each value that arrives. Only the last stage has the loss.
Graph stage_graph(const Graph& graph, const std::vector<int>& stages, const std::vector<Cut>& cuts, int stage);

// The forward or backward pass of one micro-batch.
struct Pass {
  int micro = 0;
  bool backward = false;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// Returns the passes of stage s of p over the m micro-batches of a step, in order. "gpipe" (Huang et al. 2019): all
// forwards, then all backwards. "1f1b" (PipeDream-flush, Narayanan et al. 2021): min(m, p - s) forwards ahead of the
// backwards, which bounds the activations that the stage holds. In both, backwards run in the order of the
// micro-batches, so that gradients are added in the order of the unsplit model.
std::vector<Pass> pipeline_passes(const std::string& schedule, int stages, int stage, int micro_batches);
// The largest number of micro-batches whose activations a stage holds at once.
int most_in_flight(const std::vector<Pass>& passes);
// The bubble: the fraction of time in which a stage is idle if all stages take equally long and messages take no time,
// (p - 1) / (m c + p - 1) for p stages, m micro-batches and c time chunks (parallel/time_chunk_pipeline.hpp).
double bubble_share(int stages, int micro_batches, int chunks = 1);

}  // namespace echelon::inline parallel
