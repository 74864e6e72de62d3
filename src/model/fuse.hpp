// Neighbouring layers that run as one.
#pragma once

#include "model/graph.hpp"

namespace echelon {

// The same mathematics with fewer passes over memory: where a value has one reader and Layer::fused_with gives one
// layer for the two, that layer stands in the place of the first, with its name and parameters, and bears the second's
// output under the first's name. What the loss reads keeps its name. The parameters are those of `graph`, in the same
// order.
Graph fused(const Graph& graph);

}  // namespace echelon
