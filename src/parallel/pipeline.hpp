// A model cut into stages: the graph of one stage, and what travels between stages.
//
// A value that a later stage reads travels from the stage that computes it straight to each stage that reads it, once
// for every micro-batch, and its gradient comes back the same way; there gradients of all readers are added, as in the
// whole graph.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// Every cut, in the order in which values are computed; its place here is its number in the stages' graphs.
std::vector<Cut> cuts_between(const Graph& graph, const std::vector<int>& stages);

// The nodes of one stage with their names and parameters, sends behind what is sent, receives before what reads. Only
// the last stage has the loss.
Graph stage_graph(const Graph& graph, const std::vector<int>& stages, const std::vector<Cut>& cuts, int stage);

// What a stage does with the micro-batches of a step, in this order.
struct Pass {
  int micro = 0;
  bool backward = false;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// gpipe (Huang 2019): all forwards, then all backwards. 1f1b (Narayanan 2019, PipeDream-flush): stage s of p runs
// min(m, p - s) forwards ahead of its backwards, and holds no more activations than that. Backwards follow the order of
// the micro-batches in both, so that gradients are added in the unsplit order.
std::vector<Pass> pipeline_passes(const std::string& schedule, int stages, int stage, int micro_batches);
// Micro-batches whose activations a stage holds at once.
int most_in_flight(const std::vector<Pass>& passes);
// The part of the time in which a stage waits, where all stages take equally long and nothing else costs time:
// (p - 1) / (m c + p - 1), for time cut into c chunks (parallel/staircase.hpp): a stage waits for the first chunk of
// the first micro-batch to come, and for the last chunk's gradients of the last one.
double bubble_share(int stages, int micro_batches, int chunks = 1);

}  // namespace echelon::inline parallel
