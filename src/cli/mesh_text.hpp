// SPDX-License-Identifier: Apache-2.0
// Shows the distribution of the model over the ranks of a run as a table, before the run starts.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "parallel/footprint.hpp"
#include "parallel/mesh.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {

struct MeshTable {
  std::string text;
  std::vector<Footprint> memory;  // by index in the model group
};

// Returns a table with rank, host, device, replica, stage, shard, spatial shard, layers, parameters and predicted
// memory, and lines with the bytes per sample between stages, tensor shards and spatial shards. `hosts`: one per rank.
MeshTable mesh_table(const Config& config, const RunPlan& plan, const Mesh& mesh, const std::vector<int>& hosts);

}  // namespace echelon::cli
