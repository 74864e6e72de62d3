// SPDX-License-Identifier: Apache-2.0
// Split models in fp32 on the fast device are as near to the unsplit model as that is to itself with reversed samples.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>

#include "tests/support/rounding.hpp"
#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;

struct Split {
  const char* name;
  std::function<void(ParallelConfig&)> set;
};

void check(const NamedGraph& model, const Split& split, int replicas, bool bound_weights) {
  SplitRun run{.replicas = {.graph = model.graph,
                            .shares = std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4),
                            .accumulation = 2,
                            .device = "onednn",
                            .dtype = DType::f32,
                            .activations = DType::f32},
               .parallel = {}};
  split.set(run.parallel);
  const SplitResult parts = train_split(run);
  ReplicaRun one = on_one_replica(run.replicas, true);
  const ReplicaResult whole = train_replicas(one);
  one.reversed = true;
  const ReplicaResult floor = train_replicas(one);
  const ParameterSet& parameters = model.graph.parameters();
  const double gradients = tensor_distance(parameters, parts.gradients, whole.gradients);
  const double weights = tensor_distance(parameters, parts.weights, whole.weights);
  // Reversing the samples does not change sums over channels, which splits do change: plain loops add these in another
  // order.
  one.reversed = false, one.device = "reference", one.steps = 1;
  const double of_gradients = std::max(tensor_distance(parameters, floor.gradients, whole.gradients),
                                       tensor_distance(parameters, train_replicas(one).gradients, whole.gradients));
  const double of_weights = tensor_distance(parameters, floor.weights, whole.weights);
  std::printf("%-10s %-14s k=%d fp32: gradients %.1e (floor %.1e), weights after 20 steps %.1e (floor %.1e)\n",
              model.name, split.name, replicas, gradients, of_gradients, weights, of_weights);
  CHECK(gradients <= test::rounding_bound(of_gradients));
  if (bound_weights) CHECK(weights <= test::rounding_bound(of_weights));
}

TEST_CASE("split models against the unsplit one in fp32 on onednn, beside the rounding error", "[split][onednn]") {
  const std::vector<Split> images = {{"pipeline 2", [](ParallelConfig& p) { p.pipeline = 2; }},
                                     {"tensor 2", [](ParallelConfig& p) { p.tensor = 2; }},
                                     {"space 2", [](ParallelConfig& p) { p.space = 2; }}};
  const std::vector<Split> sequences = {{"pipeline 2", [](ParallelConfig& p) { p.pipeline = 2; }},
                                        {"tensor 2", [](ParallelConfig& p) { p.tensor = 2; }},
                                        {"units 2", [](ParallelConfig& p) { p.tensor = 2, p.recurrent_from = 1; }},
                                        {"chunks 2, 3", [](ParallelConfig& p) { p.pipeline = 2, p.time_chunks = 3; }}};
  for (const int replicas : {1, 2}) {
    for (const Split& split : images) DYNAMIC_SECTION(split.name << " k=" << replicas) {
        check({"cnn_32_64", small_cnn()}, split, replicas, true);
        check({"resnet20", small_resnet20()}, split, replicas, false);
      }
    for (const Split& split : sequences) DYNAMIC_SECTION("charlstm " << split.name << " k=" << replicas) {
        check(small_sequence_models().front(), split, replicas, true);
      }
  }
}

}  // namespace
}  // namespace echelon
