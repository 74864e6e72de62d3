// SPDX-License-Identifier: Apache-2.0
// Split models whose gradients are coded between replicas. train_split itself checks that replicas of a part, and
// parameters that shards hold whole, keep the same bits.
#include <catch2/catch.hpp>
#include <cmath>

#include "comm/codec/codec.hpp"
#include "tests/support/random.hpp"
#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;

SplitRun small_run(const Graph& graph, int pipeline, int tensor) {
  SplitRun run{.replicas = {.graph = graph,
                            .shares = {8, 8, 8},
                            .accumulation = 2,
                            .dtype = DType::f32,
                            .activations = DType::f32,
                            .steps = 40,
                            .one_batch = true},
               .parallel = {}};
  run.parallel.pipeline = pipeline;
  run.parallel.tensor = tensor;
  return run;
}

// Gradients are rounded, or picked, at other places than in the unsplit run, so the loss is only about the same.
TEST_CASE("split models learn with every codec as unsplit ones do", "[split][codec]") {
  const SplitRun first = small_run(small_cnn(), 2, 2);
  ReplicaRun whole = first.replicas;
  whole.accumulation = 1;
  ReplicaRun short_run = whole;
  short_run.steps = 1;
  const double before = train_replicas(short_run).all_losses;
  std::vector<std::string> codecs = codec_names();
  codecs.push_back("none");
  for (const std::string& codec : codecs) DYNAMIC_SECTION(codec) {
      SplitRun run = first;
      run.replicas.codec = whole.codec = codec;
      const ReplicaResult alone = train_replicas(whole);
      const SplitResult split = train_split(run);
      const double gain = before - alone.all_losses;
      CHECK(gain > 0.05 * before);
      CHECK(std::abs(split.loss - alone.all_losses) < 0.25 * gain);
      const bool rounds = codec == "fp16" || codec == "bf16" || codec == "lossless" || codec == "none";
      if (rounds) CHECK(tensor_distance(whole.graph.parameters(), split.weights, alone.weights) < 0.05);
    }
}

TEST_CASE("what shards hold whole keeps the same bits on all of them, whatever the codec", "[split][codec][sampled]") {
  std::vector<std::string> codecs = codec_names();
  codecs.push_back("none");
  for (const std::string& codec : codecs)
    for (const char* strategy : {"synchronous", "server"}) DYNAMIC_SECTION(codec << " " << strategy) {
        std::vector<NamedGraph> models = {{"batch_norm", small_batch_norm_net()}, {"resnet20", small_resnet20()}};
        for (NamedGraph& model : small_sequence_models())
          if (std::string(model.name) == "wordlstm") models.push_back(std::move(model));
        for (const NamedGraph& model : sampled(models, 1, codec + strategy)) {
          INFO(model.name);
          SplitRun run = small_run(model.graph, 1, 3);
          run.replicas.steps = 6;
          run.replicas.bucket_kb = 0.5;
          run.replicas.codec = codec;
          run.replicas.strategy = strategy;
          const SplitResult split = train_split(run);
          CHECK(std::isfinite(split.loss));
        }
      }
}

}  // namespace
}  // namespace echelon
