// SPDX-License-Identifier: Apache-2.0
// Fusion: two neighbouring layers become one op.
#pragma once

#include "model/graph.hpp"

namespace echelon::inline model {

// Returns a graph that computes the same with fewer passes over memory. If a value has one reader and Layer::fused_with
// returns one layer for the two, that layer replaces the first and has the output of the second. Its name is that of
// the first if the first has parameters, else that of the second. The input of the loss keeps its name. The parameters
// are those of `graph`, in the same order.
Graph fused(const Graph& graph);

}  // namespace echelon::inline model
