// SPDX-License-Identifier: Apache-2.0
// train.reproducible: 1, 2, 4 and 8 replicas end with the same bits in fp32, loss by loss and weight by weight.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "config/traits/algorithms.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr std::int64_t kBatch = 16, kShards = 8;

std::vector<std::string> tree_algorithms() {
  return names_where(kAlgorithms, [](const AlgorithmTraits& algorithm) { return algorithm.one_tree; });
}

ReplicaRun run_of(const Graph& graph, const std::string& device, int k, const std::string& algorithm) {
  ReplicaRun run{.graph = graph, .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), kBatch / k)};
  run.algorithm = algorithm;
  run.device = device;
  run.dtype = DType::f32;
  run.steps = 3;
  run.bucket_kb = 4;
  run.micro_shards = kShards;
  return run;
}

Graph whole(const std::string& zoo, const SampleForm& form) { return build_layers(zoo_layers(zoo, form), form); }

// The reference device takes smaller variants; the fast device takes the real layers on small images.
std::vector<NamedGraph> models_for(const std::string& device) {
  const bool small = device == "reference";
  const SampleForm image{.shape = {3, 16, 16}, .classes = 10}, letter{.shape = {1, 28, 28}, .classes = 10};
  return {{"cnn_32_64", small ? small_cnn() : whole("cnn_32_64", letter)},
          {"resnet20", small ? small_resnet20() : whole("resnet20", image)},
          {"dropout", small_dropout_net()},
          {"charlstm", small_sequence_models().front().graph},
          {"sequence_classifier", small_sequence_models()[3].graph}};
}

void check_same_bits(const ReplicaResult& result, const ReplicaResult& one) {
  for (const std::uint64_t checksum : result.checksums) CHECK(checksum == one.checksums[0]);
  CHECK(result.weights == one.weights);
  CHECK(result.gradients == one.gradients);
  CHECK(result.step_losses == one.step_losses);
}

// Compares 2, 4 and 8 replicas with one.
void check_all(const NamedGraph& model, const std::string& device, const std::string& algorithm) {
  const ReplicaResult one = train_replicas(run_of(model.graph, device, 1, algorithm));
  for (const int k : {2, 4, 8}) DYNAMIC_SECTION(model.name << " on " << device << ", " << algorithm << " k=" << k) {
      check_same_bits(train_replicas(run_of(model.graph, device, k, algorithm)), one);
    }
}

TEST_CASE("reproducible: 1, 2, 4 and 8 replicas end with the same bits", "[equality]") {
  for (const NamedGraph& model : models_for("reference")) check_all(model, "reference", "halving_doubling");
}

TEST_CASE("reproducible on onednn, whole models too", "[equality][onednn][slow][sampled]") {
  for (const NamedGraph& model : models_for("onednn"))
    for (const std::string& algorithm : sampled(tree_algorithms(), 1, model.name))
      check_all(model, "onednn", algorithm);
}

TEST_CASE("reproducible on onednn with every algorithm that fits", "[equality][onednn]") {
  for (const std::string& algorithm : tree_algorithms()) {
    check_all({"cnn_32_64", small_cnn()}, "onednn", algorithm);
    check_all({"batch_norm", small_batch_norm_net()}, "onednn", algorithm);
  }
}

TEST_CASE("without micro-shards, or with another number of them, the bits differ", "[equality][onednn]") {
  const Graph graph = small_cnn();
  const ReplicaRun two = run_of(graph, "onednn", 2, tree_algorithms().front());
  const ReplicaResult eighths = train_replicas(two);
  ReplicaRun other = two;
  other.micro_shards = 4;
  CHECK(train_replicas(other).checksums != eighths.checksums);
  other.micro_shards = 0;
  CHECK(train_replicas(other).checksums != train_replicas(on_one_replica(other, false)).checksums);
}

}  // namespace
}  // namespace echelon
