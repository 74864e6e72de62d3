// What `check` says of sparse embeddings: how much of them a step touches, updates and sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::cli {

// Whether touched rows are kept apart: updated alone, and sent apart from the buckets. Else tables are as any
// parameter.
bool rows_apart(const Config& config, int replicas);

// A line a table, none where the model has no sparse parameter. `hosts` by replica; `samples` of a replica and step.
std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, const std::vector<int>& hosts,
                                      std::int64_t samples);

}  // namespace echelon::cli
