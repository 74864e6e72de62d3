// Lines of `check` about sparse embeddings: the rows that a step touches, updates and sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::cli {

// Whether touched rows are updated alone and sent apart from the buckets; else tables are treated like other
// parameters.
bool rows_apart(const Config& config, int replicas);

// One line for each sparse parameter. `hosts`: by replica; `samples`: of a replica and step. The number of touched rows
// is an upper bound: every token another row.
std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, const std::vector<int>& hosts,
                                      std::int64_t samples);

}  // namespace echelon::cli
