// SPDX-License-Identifier: Apache-2.0
// Norms that an optimiser measures of a split model must equal those of the whole model, in double, on every rank.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;

struct Meshes {
  int pipeline, tensor;
};
constexpr Meshes kMeshes[] = {{2, 1}, {1, 2}, {1, 3}, {2, 2}};

// Runs every mesh beside one and two replicas; `change` sets what is measured.
template <class Change>
void check_split_norms(const Graph& graph, const Change& change) {
  for (const auto [pipeline, tensor] : kMeshes)
    for (const int replicas : {1, 2}) {
      INFO("pipeline " << pipeline << ", tensor " << tensor << ", replicas " << replicas);
      SplitRun run{.replicas = {.graph = graph,
                                .shares = std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4),
                                .accumulation = 2},
                   .parallel = {}};
      run.parallel.pipeline = pipeline;
      run.parallel.tensor = tensor;
      run.replicas.steps = 8;
      change(run.replicas);
      const SplitResult split = train_split(run);
      const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
      const bool half = is_half(run.replicas.activations);
      CHECK(tensor_distance(run.replicas.graph.parameters(), split.weights, whole.weights) <= (half ? 0.05 : 1e-8));
      if (run.replicas.clip_norm > 0) CHECK(whole.gradient_norm > run.replicas.clip_norm);
      CHECK(split.gradient_norm == Approx(whole.gradient_norm).epsilon(1e-9));
      if (!half) continue;
      CHECK(split.skipped > 3);
      CHECK(std::abs(split.skipped - whole.skipped) <= 1);
    }
}

std::vector<NamedGraph> models() { return {{"cnn_32_64", small_cnn()}, {"batch_norm", small_batch_norm_net()}}; }

TEST_CASE("split models: gradients clipped by their norm over all parts", "[split]") {
  for (const NamedGraph& model : models()) DYNAMIC_SECTION(model.name) {
      check_split_norms(model.graph, [](ReplicaRun& run) { run.clip_norm = 0.05; });
    }
}

TEST_CASE("split models: LARS and LAMB know the norms of tensors that shards hold slices of", "[split]") {
  for (const NamedGraph& model : models())
    for (const char* rule : {"lars", "lamb"})
      for (const double clip_norm : {0.0, 0.05}) DYNAMIC_SECTION(model.name << " " << rule << " " << clip_norm) {
          check_split_norms(model.graph, [&](ReplicaRun& run) {
            run.rule = rule;
            run.clip_norm = clip_norm;
            run.weight_decay = 0.01;
          });
        }
}

// The first scale is too large for f16 in some parts only.
TEST_CASE("split models in f16: all parts skip the same steps", "[split]") {
  check_split_norms(small_batch_norm_net(), [](ReplicaRun& run) {
    run.device = "random_layout";
    run.dtype = DType::f32;
    run.activations = DType::f16;
    run.learning_rate = 1e-3;
    run.scaling = {.dynamic = true, .start = 0x1p24};
    run.steps = 12;
  });
}

}  // namespace
}  // namespace echelon
