// Which stage of a pipeline runs each layer: consecutive nodes, so that the dearest stage is as cheap as it can be.
#pragma once

#include <vector>

#include "model/graph.hpp"

namespace echelon {

// By node, from 0 to stages - 1, never falling. `costs` by node: any unit. Where some node has a `stage` of its own
// (Node::stage), the others belong to the stage of the node before, and costs do not matter. Of assignments that are
// equally good for the dearest stage, the one whose cuts carry the fewest values. ConfigError where there are more
// stages than layers, or given stages fall or leave one out.
std::vector<int> assign_stages(const Graph& graph, const std::vector<double>& costs, int stages);

}  // namespace echelon
