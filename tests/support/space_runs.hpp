// SPDX-License-Identifier: Apache-2.0
// Makes runs of models that are split by the rows of their images.
#pragma once

#include <utility>
#include <vector>

#include "base/error.hpp"
#include "parallel/space.hpp"
#include "tests/support/split_check.hpp"

namespace echelon::test {

inline SplitRun space_of(const Graph& graph, int spatial_shards, std::vector<std::int64_t> shares,
                         std::int64_t accumulation) {
  SplitRun run{.replicas = {.graph = graph, .shares = std::move(shares), .accumulation = accumulation}, .parallel = {}};
  run.parallel.space = spatial_shards;
  return run;
}

// Whether no spatial shard reads rows beyond those of its neighbours.
inline bool fits(const Graph& graph, int spatial_shards) {
  try {
    (void)SpacePlan(graph, spatial_shards);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace echelon::test
