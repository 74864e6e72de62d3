// SPDX-License-Identifier: Apache-2.0
// The stage of a pipeline for each layer: consecutive nodes, cut so that the slowest stage is as fast as possible.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

// Returns the stage of each node, from 0 to stages - 1, non-decreasing. `costs` by node, any unit. Minimises the
// largest sum of costs of a stage, then the number of elements that cross stages; O(stages n^2) for n nodes.
// `together`, by node: it must be on the stage of the node before; empty: no such node.
//
// If some node has Node::stage, the others are on the stage of the node before them, and costs do not matter. A node
// may then be on an earlier stage than the one before it, if it reads no value of a later stage.
//
// ConfigError if there are more stages than layers, or if given stages have a gap or a value that goes to an earlier
// stage.
std::vector<int> assign_stages(const Graph& graph, const std::vector<double>& costs, int stages,
                               const std::vector<bool>& together = {});

// The layers of a stage in the order of the graph, for the user: "conv1 to pool1", "encoder1, decoder1".
std::string stage_text(const Graph& graph, const std::vector<int>& stages, int stage);

}  // namespace echelon::inline parallel
