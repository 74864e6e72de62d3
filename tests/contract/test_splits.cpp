// SPDX-License-Identifier: Apache-2.0
// Split models must end with the weights of the unsplit one, in double.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"
#include "model/build.hpp"
#include "parallel/split.hpp"
#include "tests/support/image_models.hpp"
#include "tests/support/random.hpp"
#include "tests/support/split_check.hpp"

namespace echelon {
namespace {

using namespace test;

std::vector<NamedGraph> pipeline_models() {
  std::vector<NamedGraph> all = {{"cnn_32_64", small_cnn()},
                                 {"resnet20", small_resnet20()},
                                 {"dropout", small_dropout_net()},
                                 {"batch_norm", small_batch_norm_net()},
                                 {"inception", small_inception()}};
  for (NamedGraph& model : small_sequence_models()) all.push_back(std::move(model));
  all.push_back(small_stacks().front());
  return all;
}

SplitRun pipeline_of(const Graph& graph, int stages, std::vector<std::int64_t> shares, std::int64_t accumulation) {
  SplitRun run{.replicas = {.graph = graph, .shares = std::move(shares), .accumulation = accumulation}, .parallel = {}};
  run.parallel.pipeline = stages;
  return run;
}

TEST_CASE("pipelines have the weights of the unsplit model, in double", "[split][sampled]") {
  for (const NamedGraph& model : pipeline_models())
    for (const char* schedule : {"gpipe", "1f1b"})
      for (const auto& [stages, replicas] : sampled(kGroupsAndReplicas, 3, std::string(model.name) + schedule))
        DYNAMIC_SECTION(model.name << " " << schedule << " p=" << stages << " k=" << replicas) {
          SplitRun run =
              pipeline_of(model.graph, stages, std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 6), 3);
          run.parallel.schedule = schedule;
          check_split(run);
        }
}

TEST_CASE("pipelines: samples of weight 0, unequal shares, one micro-batch, memory out of the host's reach",
          "[split]") {
  SplitRun run = pipeline_of(small_cnn(), 3, {4, 2}, 2);
  run.replicas.holes = true;
  check_split(run, false);
  check_split(pipeline_of(small_cnn(), 2, {4}, 1));
  run = pipeline_of(small_batch_norm_net(), 2, {6, 6}, 3);
  run.replicas.device = "discrete";
  check_split(run);
}

TEST_CASE("pipelines: rules that keep states, and whole parameters' norms", "[split]") {
  for (const char* rule : {"adam", "lars", "lamb"}) DYNAMIC_SECTION(rule) {
      SplitRun run = pipeline_of(small_cnn(), 2, {4, 4}, 2);
      run.replicas.rule = rule;
      check_split(run);
    }
}

TEST_CASE("split models between replicas: every algorithm, parameter servers, a lossless codec, no overlap",
          "[split]") {
  const auto check = [](const std::string& what, const std::function<void(ReplicaRun&)>& change) {
    DYNAMIC_SECTION(what) {
      SplitRun run = pipeline_of(small_cnn(), 2, {4, 4, 4}, 2);
      run.parallel.tensor = 2;
      run.replicas.steps = 8;
      change(run.replicas);
      check_split(run);
    }
  };
  for (const std::string& algorithm : allreduce_names())
    check(algorithm, [&](ReplicaRun& run) { run.algorithm = algorithm; });
  check("servers", [](ReplicaRun& run) { run.strategy = "server"; });
  check("lossless", [](ReplicaRun& run) { run.codec = "lossless"; });
  check("no overlap", [](ReplicaRun& run) { run.overlap = Overlap::none; });
}

// Each stage has its own servers.
TEST_CASE("stages of asynchronous replicas: one replica is the unsplit model, lock-step is synchronous",
          "[split][asynchronous]") {
  for (const char* rule : {"sgd", "adam", "lamb"}) DYNAMIC_SECTION("one replica " << rule) {
      SplitRun run = pipeline_of(small_batch_norm_net(), 2, {6}, 1);
      run.replicas.strategy = "asynchronous", run.replicas.rule = rule;
      check_split(run);
    }
  for (const NamedGraph& model : {NamedGraph{"cnn_32_64", small_cnn()}, NamedGraph{"dropout", small_dropout_net()}})
    for (const int stages : {2, 3})
      for (const int servers : {0, 1}) DYNAMIC_SECTION(model.name << " p=" << stages << " servers=" << servers) {
          SplitRun run = pipeline_of(model.graph, stages, {4, 2}, 2);
          run.replicas.strategy = "stale_synchronous", run.replicas.bound = 0, run.replicas.servers = servers;
          run.replicas.momentum = 0, run.replicas.steps = 8;
          check_split(run, false);
        }
}

TEST_CASE("stages of asynchronous replicas: by any rules and codecs all replicas of a stage meet with the same bits",
          "[split][asynchronous][codec]") {
  std::vector<std::string> codecs = codec_names();
  codecs.push_back("none");
  std::vector<AsynchronousKeys> rules(3);
  rules[1] = {.soft = 2, .delay_compensation = 0.04};
  rules[2].states = AsyncStates::server;
  for (std::size_t i = 0; i < codecs.size(); ++i) DYNAMIC_SECTION(codecs[i]) {
      SplitRun run = pipeline_of(small_batch_norm_net(), 2, {4, 4, 4}, 2);
      run.replicas.dtype = run.replicas.activations = DType::f32, run.replicas.learning_rate = 0.02;
      run.replicas.strategy = i % 2 == 0 ? "asynchronous" : "stale_synchronous";
      run.replicas.asynchronous = rules[i % rules.size()], run.replicas.codec = codecs[i];
      CHECK(std::isfinite(train_split(run).loss));
    }
}

TEST_CASE("1f1b holds fewer activations than gpipe, the first stage most", "[split]") {
  SplitRun run = pipeline_of(small_resnet20(), 4, {8}, 8);
  run.replicas.steps = 1;
  const std::vector<std::size_t> turns = train_split(run).activation_bytes;
  run.parallel.schedule = "gpipe";
  const std::vector<std::size_t> together = train_split(run).activation_bytes;
  for (std::size_t stage = 0; stage < 4; ++stage) CHECK(turns[stage] * 8 == together[stage] * (4 - stage));
}

std::vector<NamedGraph> tensor_models() {
  return {{"digits_cnn", small_digits_cnn()},     {"cnn_32_64", small_cnn()},
          {"resnet20", small_resnet20()},         {"dropout", small_dropout_net()},
          {"batch_norm", small_batch_norm_net()}, {"inception", small_inception()}};
}

TEST_CASE("layers split by their units have the weights of whole ones, in double", "[split][sampled]") {
  for (const NamedGraph& model : tensor_models())
    for (const auto& [shards, replicas] : sampled(kGroupsAndReplicas, 3, model.name))
      DYNAMIC_SECTION(model.name << " t=" << shards << " k=" << replicas) {
        SplitRun run = pipeline_of(model.graph, 1, std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4), 2);
        run.parallel.tensor = shards;
        check_split(run);
      }
}

TEST_CASE("stages of layers split by their units", "[split]") {
  for (const NamedGraph& model : tensor_models()) DYNAMIC_SECTION(model.name) {
      SplitRun run = pipeline_of(model.graph, 2, {6}, 3);
      run.parallel.tensor = 2;
      check_split(run);
      run = pipeline_of(model.graph, 2, {4, 4}, 2);
      run.parallel.tensor = 2;
      run.replicas.device = "discrete";
      run.replicas.steps = 3;
      check_split(run);
    }
}

// In the other tests all ranks are on one host and share memory.
TEST_CASE("split models whose ranks lie on several hosts exchange messages", "[split]") {
  const auto check = [](const std::string& what, const Graph& graph,
                        const std::function<void(ParallelConfig&)>& split) {
    for (const char* device : {"reference", "discrete"}) DYNAMIC_SECTION(what << " " << device) {
        SplitRun run = pipeline_of(graph, 1, {4, 4}, 2);
        run.replicas.device = device;
        run.replicas.steps = 5;
        run.parallel.allow_across_nodes = true;
        split(run.parallel);
        check_split(run);
      }
  };
  check("pipeline", small_resnet20(), [](ParallelConfig& split) { split.pipeline = 3; });
  check("tensor", small_cnn(), [](ParallelConfig& split) { split.tensor = 2; });
  check("both", small_batch_norm_net(), [](ParallelConfig& split) { split.pipeline = 2, split.tensor = 2; });
  check("space", small_batch_norm_net(), [](ParallelConfig& split) { split.space = 2; });
  check("stages of rows", small_resnet20(), [](ParallelConfig& split) { split.pipeline = 2, split.space = 2; });
}

TEST_CASE("splits that do not apply to a model are refused", "[split]") {
  const auto refused = [](const NamedGraph& model, const std::function<void(ParallelConfig&)>& split) {
    INFO(model.name);
    ParallelConfig parallel;
    split(parallel);
    CHECK_THROWS_AS(part_of(model.graph, parallel, {}, node_flops(model.graph, DType::f64)), ConfigError);
  };
  for (const NamedGraph& model : tensor_models())
    refused(model, [](ParallelConfig& parallel) { parallel.pipeline = 2, parallel.time_chunks = 2; });
  for (const NamedGraph& model : small_sequence_models()) {
    refused(model, [](ParallelConfig& parallel) { parallel.space = 2; });
    if (const std::string name = model.name; name == "transformer" || name == "ranking")
      refused(model, [](ParallelConfig& parallel) { parallel.pipeline = 2, parallel.time_chunks = 2; });
  }
}

}  // namespace
}  // namespace echelon
