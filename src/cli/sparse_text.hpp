// What `check` says of sparse embeddings: how much of them a step touches, updates and sends.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::cli {

// A line a table, none where the model has no sparse parameter. `samples`: of a replica and step.
std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, int replicas, std::int64_t samples);

}  // namespace echelon::cli
