// How a run's ranks share its models, drawn before it starts.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"
#include "parallel/mesh.hpp"

namespace echelon::cli {

// A table: rank, host, device, replica, stage, shard, band, layers, parameters and the memory that they need; lines
// below say what travels. `micro`: samples of a micro-batch; `hosts`: by rank.
std::string mesh_table(const Config& config, const Graph& graph, const Mesh& mesh, const std::vector<int>& hosts,
                       std::int64_t micro);

}  // namespace echelon::cli
