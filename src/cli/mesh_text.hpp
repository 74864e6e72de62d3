// How a run's ranks share its models, drawn before it starts.
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
  std::vector<Footprint> memory;  // by place in the group
};

// A table: rank, host, device, replica, stage, shard, spatial shard, layers, parameters and the memory that they need;
// lines below say what travels. `hosts`: by rank.
MeshTable mesh_table(const Config& config, const RunPlan& plan, const Mesh& mesh, const std::vector<int>& hosts);

}  // namespace echelon::cli
