// What each rank of a replica runs: the part of the model that [parallel] gives its seat.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "model/graph.hpp"
#include "parallel/cut.hpp"
#include "parallel/mesh.hpp"

namespace echelon {

// What parallel.recurrent_from = -1 means here: on the host's own cores parts of a layer pay from 64 units on, and from
// 512 where shards may lie on several hosts (results/splits.md); on GPUs, whose states would pass through the host at
// every step, layers stay whole.
void settle_recurrent(Config& config);

struct Part {
  std::vector<int> stages;  // by node of the whole graph
  std::vector<Cut> cuts;    // that its nodes name by number, on every rank of the stage the same but for their shapes
  Graph graph;
  std::string shards = {};                         // how parallel.tensor splits its layers, in words
  std::vector<ArenaRange> counted_elsewhere = {};  // gradients that a rank with the same part has too, and counts

  // Before gradients are summed over the ranks with this part: what another one counts becomes zero here.
  void leave_to_others(ArenaRange ready, Arenas& arenas) const;
};

// `costs` by node of the whole graph, from which stages are chosen. ConfigError where the model cannot be split so.
Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshSeat& seat,
             const std::vector<double>& costs);

}  // namespace echelon
