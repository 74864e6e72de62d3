// What each rank of a replica runs: the part of the model that [parallel] gives its coordinates.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "model/graph.hpp"
#include "parallel/cut.hpp"
#include "parallel/mesh.hpp"

namespace echelon::inline parallel {

// What parallel.recurrent_from = -1 means here: on the host's own cores parts of a layer pay from 64 units on, and from
// 512 where shards may lie on several hosts (results/splits.md); on GPUs, whose states would pass through the host at
// every step, layers stay whole.
void settle_recurrent(Config& config);

// Puts the keys of [parallel] that nothing reads at this pipeline, tensor and space back to their defaults.
void leave_out_unused(ParallelConfig& parallel);

// One rank has nobody to share a model with: a config for a split model then trains it whole, to the same weights, so
// that one file serves 1 and k ranks. Gives a note for people; does nothing, and gives none, for more ranks.
std::string unsplit_alone(Config& config, int ranks);

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
Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshCoord& coord,
             const std::vector<double>& costs);

}  // namespace echelon::inline parallel
