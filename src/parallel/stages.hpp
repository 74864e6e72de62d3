// Which stage of a pipeline runs each layer: consecutive nodes, so that the slowest stage is as cheap as it can be.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

// By node, from 0 to stages - 1, never falling. `costs` by node: any unit. Where some node has a `stage` of its own
// (Node::stage), the others belong to the stage of the node before, costs do not matter, and the next layer may be on
// an earlier stage, as long as it takes nothing of a later one. Of assignments that are equally good for the slowest
// stage, the one whose cuts carry the fewest values. `together`, by node: not to be cut from the node before.
// ConfigError where there are more stages than layers, or given stages fall along a value or leave one out.
std::vector<int> assign_stages(const Graph& graph, const std::vector<double>& costs, int stages,
                               const std::vector<bool>& together = {});

// "conv1 to pool1", "encoder1, decoder1": its layers in the order of the graph, for people.
std::string stage_text(const Graph& graph, const std::vector<int>& stages, int stage);

}  // namespace echelon::inline parallel
