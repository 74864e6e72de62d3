// Models split by the rows of their images, held to the unsplit ones.
#pragma once

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "tests/support/split_models.hpp"

namespace echelon::test {

inline constexpr double kDouble = 1e-8;

// `groups`: one replica takes the very micro-batches of all, as batch norm needs.
inline SplitResult check_split(const SplitRun& run, bool groups = true) {
  SplitResult split = train_split(run);
  const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, groups));
  CHECK(tensor_distance(run.replicas.graph.parameters(), split.gradients, whole.gradients) <= kDouble);
  CHECK(tensor_distance(run.replicas.graph.parameters(), split.weights, whole.weights) <= kDouble);
  CHECK(split.loss == Approx(whole.loss).epsilon(1e-9));
  return split;
}

inline SplitRun space_of(const Graph& graph, int bands, std::vector<std::int64_t> shares, std::int64_t accumulation) {
  SplitRun run{.replicas = {.graph = graph, .shares = std::move(shares), .accumulation = accumulation}, .parallel = {}};
  run.parallel.space = bands;
  return run;
}

}  // namespace echelon::test
