// SPDX-License-Identifier: Apache-2.0
// Synchronised batch norm over groups of neighbouring replicas (model.batch_norm_group).
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kWithin = 1e-8;  // as in test_equality.cpp

}  // namespace

TEST_CASE("batch norm over groups of replicas has the statistics of the batch cut into as many parts", "[equality]") {
  ModelConfig norms;
  const Graph local = small_batch_norm_net(norms);
  norms.synchronised_batch_norm = true;
  const Graph synchronised = small_batch_norm_net(norms);
  const auto weights = [&](const Graph& graph, std::vector<std::int64_t> shares, std::int64_t group = 0) {
    ReplicaRun run{.graph = graph, .shares = std::move(shares)};
    if (group > 0) run.sets = {"model.batch_norm_group=" + std::to_string(group)};
    return train_replicas(run).weights;
  };
  const auto apart = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return tensor_distance(local.parameters(), a, b);
  };
  const std::vector<double> halves = weights(local, {4, 4}), quarters = weights(local, {2, 2, 2, 2});
  CHECK(apart(weights(synchronised, {2, 2, 2, 2}, 2), halves) <= kWithin);
  CHECK(apart(weights(synchronised, {1, 3, 2, 2}, 2), halves) <= kWithin);
  CHECK(apart(weights(synchronised, {2, 2, 2, 2}, 1), quarters) <= kWithin);
  CHECK(apart(weights(synchronised, {2, 2, 2, 2}, 4), weights(synchronised, {8})) <= kWithin);
  CHECK(apart(halves, quarters) > 1e-6);
  CHECK(apart(weights(synchronised, {1, 1, 1, 1, 1, 1}, 3), weights(local, {3, 3})) <= kWithin);
}

}  // namespace echelon
