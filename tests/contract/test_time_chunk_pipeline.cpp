// SPDX-License-Identifier: Apache-2.0
// Stacks of recurrent layers with time cut into chunks must end with the weights of whole ones, in double.
#include <catch2/catch.hpp>

#include "device/arenas.hpp"
#include "model/program.hpp"
#include "parallel/time_chunk_pipeline.hpp"
#include "tests/support/rounding.hpp"
#include "tests/support/split_check.hpp"

namespace echelon {
namespace {

using namespace test;

SplitRun time_chunk_pipeline(const Graph& graph, int stages, int chunks, int replicas, std::int64_t micro_batches) {
  SplitRun run{.replicas = {.graph = graph,
                            .shares = std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 2 * micro_batches),
                            .accumulation = micro_batches,
                            .steps = 20},
               .parallel = {}};
  run.parallel.pipeline = stages;
  run.parallel.time_chunks = chunks;
  return run;
}

std::vector<NamedGraph> models() {
  std::vector<NamedGraph> all = small_stacks();
  for (NamedGraph& model : small_sequence_models())
    if (const std::string name = model.name; name != "transformer" && name != "ranking")
      all.push_back(std::move(model));
  return all;
}

std::int64_t steps_of(const Graph& graph) {
  std::int64_t least = graph.values().front().shape[0];
  if (const ValueId target = graph.find("target"); target >= 0)
    least = std::min(least, graph.values()[static_cast<std::size_t>(target)].shape[0]);
  return least;
}

TEST_CASE("time-chunk pipelines have the weights of the unsplit model, in double", "[split]") {
  for (const NamedGraph& model : models())
    for (const int stages : {1, 2, 4})
      for (const int chunks : {2, 3, static_cast<int>(steps_of(model.graph))})
        for (const int replicas : {1, 2})
          DYNAMIC_SECTION(model.name << " p=" << stages << " c=" << chunks << " k=" << replicas) {
            check_split(time_chunk_pipeline(model.graph, stages, chunks, replicas, 1));
          }
}

TEST_CASE("time-chunk pipelines over several micro-batches, by either schedule", "[split]") {
  for (const NamedGraph& model : models())
    for (const char* schedule : {"gpipe", "1f1b"})
      for (const int micro_batches : {2, 7}) DYNAMIC_SECTION(model.name << " " << schedule << " m=" << micro_batches) {
          SplitRun run = time_chunk_pipeline(model.graph, 3, 3, 1, micro_batches);
          run.parallel.schedule = schedule;
          run.replicas.steps = 3;
          check_split(run);
        }
}

TEST_CASE(
    "time-chunk pipelines: states carried from step to step, samples of weight 0, memory out of the host's reach, "
    "shards",
    "[split]") {
  for (const int stages : {1, 2, 3})
    for (const int chunks : {2, 6})
      for (const int replicas : {1, 2}) DYNAMIC_SECTION("carry p=" << stages << " c=" << chunks << " k=" << replicas) {
          check_split(time_chunk_pipeline(small_carrying_stack(), stages, chunks, replicas, 1), false);
        }
  for (const NamedGraph& model : small_stacks()) DYNAMIC_SECTION(model.name << " far") {
      SplitRun run = time_chunk_pipeline(model.graph, 3, 2, 2, 2);
      run.replicas.device = "discrete";
      run.replicas.holes = true;
      check_split(run);
    }
  for (const NamedGraph& model : small_stacks()) DYNAMIC_SECTION(model.name << " shards") {
      SplitRun run = time_chunk_pipeline(model.graph, 1, 3, 1, 2);
      run.parallel.tensor = 2;
      check_split(run);
    }
}

TEST_CASE("time-chunk pipelines on the fast device: the weights to rounding, and chunks share what is packed of them",
          "[split][onednn]") {
  for (const NamedGraph& model : models()) DYNAMIC_SECTION(model.name) {
      SplitRun run = time_chunk_pipeline(model.graph, 2, 3, 1, 2);
      run.replicas.device = "onednn";
      run.replicas.dtype = DType::f32;
      run.replicas.steps = 3;
      const SplitResult split = train_split(run);
      ReplicaRun one = on_one_replica(run.replicas, true);
      const ReplicaResult whole = train_replicas(one);
      one.reversed = true;
      const ParameterSet& parameters = run.replicas.graph.parameters();
      const double floor = tensor_distance(parameters, train_replicas(one).weights, whole.weights);
      CHECK(tensor_distance(parameters, split.weights, whole.weights) <= test::rounding_bound(floor));
    }
  const auto packed_bytes = [](const Graph& graph) {
    const auto device = open_device("onednn", {});
    Arenas arenas(*device, graph.parameters(), DType::f32);
    const auto before = device->allocated_bytes();
    const Program program(graph, arenas, {.batch = 4});
    return device->allocated_bytes() - before - program.activation_bytes() - program.scratch_bytes();
  };
  const Graph whole = small_stacks()[0].graph;
  const std::vector<int> stages(whole.nodes().size());
  CHECK(packed_bytes(whole) > 0);
  CHECK(packed_bytes(cut_time(whole, stages, 7).graph) == packed_bytes(whole));
}

TEST_CASE("time-chunk pipelines: sparse tables, clearing and marking rows once a step", "[split]") {
  for (const double density : {0.0, 1.0}) DYNAMIC_SECTION("density " << density) {
      SplitRun run = time_chunk_pipeline(small_stacks()[1].graph, 2, 3, 2, 2);
      run.replicas.sparse_density = density;
      run.replicas.momentum = 0;
      run.replicas.weight_decay = 0;
      check_split(run);
    }
}

}  // namespace
}  // namespace echelon
