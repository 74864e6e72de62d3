// SPDX-License-Identifier: Apache-2.0
// Lines of `check` about sparse embeddings: the rows that a step touches, updates and sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::cli {

// Whether only touched rows are updated, and sent apart from the buckets. Otherwise tables are treated like other
// parameters.
bool rows_apart(const Config& config, int replicas);

// Returns one line per sparse parameter. `hosts`: one per replica. `samples`: of a replica in a step. The number of
// touched rows is an upper bound that assumes every token to touch a different row.
std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, const std::vector<int>& hosts,
                                      std::int64_t samples);

}  // namespace echelon::cli
