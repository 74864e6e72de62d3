// SPDX-License-Identifier: Apache-2.0
// The part of the model that a rank runs, from [parallel] and the rank's coordinates in the mesh.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "data/slab.hpp"
#include "device/arenas.hpp"
#include "model/graph.hpp"
#include "parallel/cut.hpp"
#include "parallel/mesh.hpp"

namespace echelon::inline parallel {

// Replaces parallel.recurrent_from = -1 by a number: 64 units on the host's cores, above which splitting a recurrent
// layer pays (results/splits_units.md), 512 with allow_across_nodes, 0 (never) on GPUs, whose states would pass through
// the host at every step. Does nothing unless tensor > 1 or split = "auto".
void resolve_recurrent_from(Config& config);

// Resets the keys of [parallel] that have no effect with this pipeline, tensor and space to their defaults.
void leave_out_unused(ParallelConfig& parallel);

// On one rank: sets pipeline, tensor and space to 1, so that one file serves 1 and k ranks; the weights are those of
// the split model. Returns a note for the user, empty if nothing changed. For more ranks it does nothing.
std::string unsplit_alone(Config& config, int ranks);

struct Part {
  std::vector<int> stages;  // by node of the whole graph
  std::vector<Cut> cuts;    // by the number that nodes name; the same on every rank of the group
  Graph graph;
  std::string shards = {};                         // how parallel.tensor splits its layers, for the user
  std::vector<ArenaRange> counted_elsewhere = {};  // gradients that spatial shard 0 has too, and adds to the sum
  Slab slab = {};                                  // what the rank reads of each sample and label

  // Whether each spatial shard computes the loss of its rows; else all compute that of whole samples.
  bool has_loss_by_rows() const { return slab.labels.any(); }

  // Zeroes the gradients of `ready` that are counted_elsewhere, before gradients are summed over the holders of the
  // part.
  void zero_counted_elsewhere(ArenaRange ready, Arenas& arenas) const;
};

// Returns the part at these coordinates. `costs` (by node of the whole graph, any unit) determine the stages. A pure
// function. ConfigError, with the layer, if the model cannot be split in this way.
Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshCoord& coord,
             const std::vector<double>& costs);

}  // namespace echelon::inline parallel
