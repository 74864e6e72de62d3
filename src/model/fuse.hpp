// Neighbouring layers that run as one.
#pragma once

#include "model/graph.hpp"

namespace echelon::inline model {

// The same mathematics with fewer passes over memory: where a value has one reader and Layer::fused_with gives one
// layer for the two, that layer stands in the place of the first, with its parameters and, where it has some, its name,
// else with the second's; its output is that of the second. What the loss reads keeps its name. The parameters are
// those of `graph`, in the same order.
Graph fused(const Graph& graph);

}  // namespace echelon::inline model
