// SPDX-License-Identifier: Apache-2.0
// Recurrent layers split by their units must end with the weights of whole ones, in double.
#include <catch2/catch.hpp>
#include <functional>
#include <string_view>

#include "comm/collective/algorithms.hpp"
#include "model/build.hpp"
#include "parallel/split.hpp"
#include "tests/support/split_check.hpp"

namespace echelon {
namespace {

using namespace test;

std::vector<NamedGraph> models() {
  std::vector<NamedGraph> all;
  for (NamedGraph& model : small_sequence_models())
    if (const std::string_view name = model.name; name != "transformer" && name != "ranking")
      all.push_back(std::move(model));
  for (NamedGraph& model : small_stacks()) all.push_back(std::move(model));
  return all;
}

SplitRun split_of(const Graph& graph, int shards, std::vector<std::int64_t> shares, std::int64_t accumulation) {
  SplitRun run{.replicas = {.graph = graph, .shares = std::move(shares), .accumulation = accumulation}, .parallel = {}};
  run.parallel.tensor = shards;
  run.parallel.recurrent_from = 1;
  return run;
}

int recurrent_parts(const SplitRun& run) {
  const std::vector<double> costs = node_flops(run.replicas.graph, DType::f64);
  int parts = 0;
  const Graph graph = part_of(run.replicas.graph, run.parallel, {}, costs).graph;
  for (const Node& node : graph.nodes())
    parts += node.layer->attributes({}).find("units 0 to") != std::string::npos ? 1 : 0;
  return parts;
}

TEST_CASE("recurrent layers split by their units have the weights of whole ones, in double", "[split][recurrent]") {
  for (const NamedGraph& model : models())
    for (const int shards : {2, 3})
      for (const int replicas : {1, 2}) DYNAMIC_SECTION(model.name << " t=" << shards << " k=" << replicas) {
          const SplitRun run =
              split_of(model.graph, shards, std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4), 2);
          CHECK(recurrent_parts(run) > 0);
          check_split(run);
        }
}

TEST_CASE("parts of recurrent layers: on stages, in chunks of time, on four shards", "[split][recurrent]") {
  for (const NamedGraph& model : small_stacks()) DYNAMIC_SECTION(model.name) {
      SplitRun run = split_of(model.graph, 2, {6}, 3);
      run.parallel.pipeline = 2;
      check_split(run);
      run.replicas.device = "discrete";
      run.parallel.time_chunks = 3;
      run.replicas.steps = 5;
      check_split(run);
    }
  check_split(split_of(small_stacks().front().graph, 4, {4}, 1));
}

TEST_CASE("parts of recurrent layers: states carried from batch to batch, whole and in chunks", "[split][recurrent]") {
  for (const int chunks : {1, 2, 6}) DYNAMIC_SECTION("chunks " << chunks) {
      SplitRun run = split_of(small_carrying_stack(), 2, {2, 2}, 1);
      run.parallel.time_chunks = chunks;
      check_split(run, false);
    }
}

TEST_CASE("parts of recurrent layers between replicas: every algorithm, a codec, norms, weight 0",
          "[split][recurrent]") {
  const auto check = [](const std::string& what, const std::function<void(ReplicaRun&)>& change, bool groups = true) {
    DYNAMIC_SECTION(what) {
      SplitRun run = split_of(small_stacks().front().graph, 2, {4, 4}, 2);
      run.replicas.steps = 8;
      change(run.replicas);
      check_split(run, groups);
    }
  };
  for (const std::string& algorithm : allreduce_names())
    check(algorithm, [&](ReplicaRun& run) { run.algorithm = algorithm; });
  check("lossless", [](ReplicaRun& run) { run.codec = "lossless"; });
  check("clipped", [](ReplicaRun& run) { run.clip_norm = 0.05; });
  for (const char* rule : {"adam", "lars", "lamb"}) check(rule, [&](ReplicaRun& run) { run.rule = rule; });
  check(
      "holes", [](ReplicaRun& run) { run.holes = true; }, false);
}

// This device keeps gates and states in f32, of parts and of whole layers; the places where halves are rounded differ.
TEST_CASE("parts of recurrent layers in halves, on several hosts", "[split][recurrent]") {
  for (const NamedGraph& model : small_stacks()) DYNAMIC_SECTION(model.name) {
      SplitRun run = split_of(model.graph, 2, {4, 4}, 2);
      run.replicas.device = "random_layout";
      run.replicas.dtype = DType::f32;
      run.replicas.activations = DType::f16;
      run.replicas.steps = 3;
      run.parallel.allow_across_nodes = true;
      const SplitResult split = train_split(run);
      const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
      CHECK(tensor_distance(model.graph.parameters(), split.gradients, whole.gradients) <= 2e-2);
      CHECK(split.loss == Approx(whole.loss).epsilon(1e-2));
    }
}

}  // namespace
}  // namespace echelon
