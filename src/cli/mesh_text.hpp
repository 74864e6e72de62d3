// The distribution of the models over the ranks of a run as a table, before it starts.
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

// A table: rank, host, device, replica, stage, shard, spatial shard, layers, parameters and predicted memory;
// lines below with the bytes between stages, tensor shards and spatial shards a sample. `hosts`: by rank.
MeshTable mesh_table(const Config& config, const RunPlan& plan, const Mesh& mesh, const std::vector<int>& hosts);

}  // namespace echelon::cli
