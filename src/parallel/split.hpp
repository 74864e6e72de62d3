// What each rank of a replica runs: the part of the model that [parallel] gives its seat.
#pragma once

#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"
#include "parallel/cut.hpp"
#include "parallel/mesh.hpp"

namespace echelon {

struct Part {
  std::vector<int> stages;  // by node of the whole graph
  std::vector<Cut> cuts;    // that its nodes name by number; those between stages come first, on every rank the same
  Graph graph;
};

// `costs` by node of the whole graph, from which stages are chosen. ConfigError where the model cannot be split so.
Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshSeat& seat,
             const std::vector<double>& costs);

}  // namespace echelon
