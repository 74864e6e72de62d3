// The stage of a pipeline for each layer: consecutive nodes, cut so that the slowest stage is as fast as possible.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

// By node: its stage, from 0 to stages - 1, non-decreasing. `costs` by node, any unit: minimises the largest sum of
// costs of a stage, then the number of elements that cross stages; O(stages n^2) for n nodes. `together`, by node: must
// be on the stage of the node before; empty: no such node.
//
// Where some node has Node::stage, the others are on the stage of the node before them and costs do not matter; a node
// may then be on an earlier stage than the one before it, if it reads no value of a later stage.
//
// ConfigError where there are more stages than layers, or given stages have a gap or a value that goes to an earlier
// one.
std::vector<int> assign_stages(const Graph& graph, const std::vector<double>& costs, int stages,
                               const std::vector<bool>& together = {});

// The layers of a stage in the order of the graph, for people: "conv1 to pool1", "encoder1, decoder1".
std::string stage_text(const Graph& graph, const std::vector<int>& stages, int stage);

}  // namespace echelon::inline parallel
