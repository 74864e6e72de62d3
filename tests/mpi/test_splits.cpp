// SPDX-License-Identifier: Apache-2.0
// Split models under MPI must end with the weights of the unsplit one.
#include <catch2/catch.hpp>

#include "comm/group.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/image_models.hpp"
#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;

// Each rank holds its part; together the ranks hold every replica's weights.
void check_split(const SplitRun& run) {
  std::vector<double> weights = train_split_rank(ring_transport(), run).weights, holders;
  for (const double weight : weights) holders.push_back(weight == 0 ? 0 : 1);
  Engine engine(ring_transport());
  Group(engine, 1).sum(weights);
  Group(engine, 1).sum(holders);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (holders[i] > 0) weights[i] /= holders[i];
  const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
  CHECK(tensor_distance(run.replicas.graph.parameters(), weights, whole.weights) <= 1e-8);
}

SplitRun run_of(int group_size) {
  const auto replicas = static_cast<std::size_t>(ring_size() / group_size);
  return {.replicas = {.graph = small_batch_norm_net(),
                       .shares = std::vector<std::int64_t>(replicas, 6),
                       .accumulation = 3},
          .parallel = {}};
}

TEST_CASE("pipelines under MPI have the weights of the unsplit model, in double", "[split]") {
  for (const int stages : {1, 2, 3, 4}) {
    if (ring_size() % stages != 0) continue;
    for (const char* schedule : {"gpipe", "1f1b"}) {
      INFO(stages << " stages, " << schedule);
      SplitRun run = run_of(stages);
      run.parallel.pipeline = stages;
      run.parallel.schedule = schedule;
      check_split(run);
    }
  }
}

TEST_CASE("time-chunk pipelines under MPI have the weights of the unsplit model, in double", "[split]") {
  for (const NamedGraph& model : small_stacks())
    for (const int stages : {1, 2, 3, 4}) {
      if (ring_size() % stages != 0) continue;
      INFO(model.name << ", " << stages << " stages");
      SplitRun run = run_of(stages);
      run.replicas.graph = model.graph;
      run.replicas.steps = 4;
      run.parallel.pipeline = stages;
      run.parallel.time_chunks = 5;
      check_split(run);
    }
}

TEST_CASE("recurrent layers split by their units under MPI, and stages of them, in double", "[split]") {
  for (const NamedGraph& model : small_stacks())
    for (const auto& [stages, shards] : {std::pair{1, 1}, {1, 2}, {1, 3}, {2, 2}}) {
      if (ring_size() % (stages * shards) != 0) continue;
      INFO(model.name << ", " << stages << " stages, " << shards << " shards");
      SplitRun run = run_of(stages * shards);
      run.replicas.graph = model.graph;
      run.replicas.steps = 4;
      run.parallel.pipeline = stages;
      run.parallel.tensor = shards;
      run.parallel.recurrent_from = 1;
      check_split(run);
    }
}

TEST_CASE("layers split by their units under MPI, and stages of them, in double", "[split]") {
  for (const auto& [stages, shards] : {std::pair{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}}) {
    if (ring_size() % (stages * shards) != 0) continue;
    INFO(stages << " stages, " << shards << " shards");
    SplitRun run = run_of(stages * shards);
    run.parallel.pipeline = stages;
    run.parallel.tensor = shards;
    check_split(run);
  }
}

TEST_CASE("images split by rows under MPI, and stages of them, in double", "[split]") {
  for (const auto& [stages, spatial_shards] : {std::pair{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}}) {
    if (ring_size() % (stages * spatial_shards) != 0) continue;
    INFO(stages << " stages, " << spatial_shards << " spatial shards");
    SplitRun run = run_of(stages * spatial_shards);
    run.replicas.graph = tall_batch_norm_net();
    run.parallel.pipeline = stages;
    run.parallel.space = spatial_shards;
    check_split(run);
  }
}

}  // namespace
}  // namespace echelon
