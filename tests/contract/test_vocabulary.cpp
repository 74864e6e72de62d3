// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings and softmax cross-entropy split by vocabulary: the parts together must equal the whole.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "model/build.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/random.hpp"
#include "tests/support/split_check.hpp"

namespace echelon {
namespace {

using namespace test;

// The result of the parts of a softmax over `K` classes for these logits (N, K).
struct Joined {
  Values sums;     // (3)
  Values dlogits;  // (N, K)
};

Joined by_parts(const SoftmaxDims& d, std::int64_t parts, const std::vector<double>& logits, const Values& labels,
                const Values& weights) {
  const auto units = [&](std::int64_t p) { return std::pair{d.K * p / parts, d.K * (p + 1) / parts}; };
  const auto dims = [&](std::int64_t p) {
    return SoftmaxPartDims{d.N, units(p).second - units(p).first, units(p).first, d.K, parts, d.smoothing};
  };
  const auto columns = [&](std::int64_t p) {
    std::vector<double> part;
    for (std::int64_t n = 0; n < d.N; ++n)
      part.insert(part.end(), logits.begin() + n * d.K + units(p).first, logits.begin() + n * d.K + units(p).second);
    return part;
  };
  std::vector<double> encoded(static_cast<std::size_t>(d.N * parts * SoftmaxPartDims::kPartials));
  for (std::int64_t p = 0; p < parts; ++p) {
    const Values own = oracle_outputs(f64_spec(OpKind::loss_softmax_part, dims(p)), {columns(p), labels[0]});
    for (std::int64_t n = 0; n < d.N; ++n)
      for (std::int64_t i = 0; i < SoftmaxPartDims::kPartials; ++i)
        encoded[static_cast<std::size_t>((n * parts + p) * SoftmaxPartDims::kPartials + i)] =
            own[0][static_cast<std::size_t>(n * SoftmaxPartDims::kPartials + i)];
  }
  const Values joined = oracle_outputs(f64_spec(OpKind::loss_softmax_join, dims(0)), {encoded, weights[0]});
  Joined result{.sums = {joined[1]}, .dlogits = {std::vector<double>(logits.size())}};
  for (std::int64_t p = 0; p < parts; ++p) {
    const Values back = oracle_outputs(f64_spec(OpKind::loss_softmax_part_backward, dims(p)),
                                       {columns(p), joined[0], labels[0], weights[0]}, {.scale = 0.125});
    const auto [begin, end] = units(p);
    for (std::int64_t n = 0; n < d.N; ++n)
      for (std::int64_t k = begin; k < end; ++k)
        result.dlogits[0][static_cast<std::size_t>(n * d.K + k)] =
            back[0][static_cast<std::size_t>(n * (end - begin) + k - begin)];
  }
  return result;
}

TEST_CASE("softmax cross-entropy of parts: loss, hits and gradient of the whole, ties included", "[device]") {
  const SoftmaxDims d{40, 7, GENERATE(0.0, 0.1)};
  const bool ties = GENERATE(false, true);
  const double large = GENERATE(1.0, 400.0);
  std::vector<double> logits = random_values(static_cast<std::size_t>(d.N * d.K), "logits");
  for (double& logit : logits) logit = large * (ties ? std::round(2 * logit) : 3 * logit);
  const auto random = random_integers(static_cast<std::size_t>(d.N), 0, d.K - 1, "labels");
  Values labels = {{random.begin(), random.end()}};
  labels[0][0] = static_cast<double>(std::max_element(logits.begin(), logits.begin() + d.K) - logits.begin());  // a hit
  std::vector<double> weight(static_cast<std::size_t>(d.N), 1.0);
  weight[3] = 0, weight[5] = 0.5;
  const Values weights = {weight};
  const Values whole = oracle_outputs(f64_spec(OpKind::loss_softmax_forward, d), {logits, labels[0], weight});
  const Values back =
      oracle_outputs(f64_spec(OpKind::loss_softmax_backward, d), {whole[0], labels[0], weight}, {.scale = 0.125});
  REQUIRE(whole[1][1] > 0);
  for (const std::int64_t parts : {1, 2, 3, 7}) {
    INFO(parts << " parts");
    const Joined joined = by_parts(d, parts, logits, labels, weights);
    CHECK(joined.sums[0][0] == Approx(whole[1][0]).epsilon(1e-12));
    CHECK(joined.sums[0][1] == whole[1][1]);
    CHECK(joined.sums[0][2] == whole[1][2]);
    CHECK(relative_distance(joined.dlogits[0], back[0]) < 1e-10);
  }
}

SplitRun vocabulary_run(const Graph& graph, int pipeline, int tensor, int replicas) {
  SplitRun run{.replicas = {.graph = graph,
                            .shares = std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4),
                            .accumulation = 2,
                            .steps = 20},
               .parallel = {}};
  run.parallel.pipeline = pipeline;
  run.parallel.tensor = tensor;
  return run;
}

TEST_CASE("models of sequences split by vocabulary have the weights of whole ones, in double", "[split]") {
  std::vector<NamedGraph> models = small_sequence_models();
  models.push_back(small_stacks().front());
  for (const NamedGraph& model : models)
    for (const auto& [pipeline, tensor] : {std::pair{1, 2}, {1, 3}, {1, 4}, {2, 2}})
      for (const int replicas : {1, 2})
        DYNAMIC_SECTION(model.name << " p=" << pipeline << " t=" << tensor << " k=" << replicas) {
          if (pipeline > 1 && std::string(model.name) == "sequence_classifier") continue;  // nothing to cut
          SplitRun run = vocabulary_run(model.graph, pipeline, tensor, replicas);
          run.replicas.holes = true;
          check_split(run);
        }
}

TEST_CASE("split tables keep the rows that a step touches: sent, applied and lazy", "[split][sparse]") {
  Graph graph;
  for (NamedGraph& model : small_sequence_models())
    if (std::string(model.name) == "ranking") graph = std::move(model.graph);
  const auto& all = graph.parameters().all();
  REQUIRE(std::any_of(all.begin(), all.end(), [](const Parameter& p) { return p.sparse; }));
  for (const double sparse_density : {0.0, 1.0})
    for (const bool lazy : {false, true})
      for (const char* rule : {"sgd", "adam"}) DYNAMIC_SECTION(sparse_density << " " << lazy << " " << rule) {
          SplitRun run = vocabulary_run(graph, 1, 3, 2);
          run.replicas.rule = rule;
          run.replicas.lazy = lazy;
          run.replicas.sparse_density = sparse_density;
          run.replicas.momentum = lazy ? 0.9 : 0, run.replicas.weight_decay = 0;
          check_split(run);
        }
}

TEST_CASE("the loss of parts of the classes: smoothed labels, clipping, memory out of the host's reach", "[split]") {
  LayerConfig embedding, head;
  embedding.type = "embedding", embedding.units = 6;
  head.type = "dense", head.units = 11;
  ModelConfig model;
  model.layers = {embedding, head};
  model.label_smoothing = 0.1;
  const Graph graph = build_model(model, {.shape = {5}, .vocabulary = 9, .label = {5}, .classes = 11});
  for (const char* device : {"reference", "discrete"}) {
    SplitRun run = vocabulary_run(graph, 1, 4, 2);
    run.replicas.device = device;
    run.replicas.clip_norm = 0.05;
    check_split(run);
  }
}

}  // namespace
}  // namespace echelon
