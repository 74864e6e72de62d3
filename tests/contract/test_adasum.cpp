// SPDX-License-Identifier: Apache-2.0
// Compares training with Adasum with a plain tree over simulated workers, in double on `reference`.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;
using Values = std::vector<double>;

constexpr double kDouble = 1e-8;

ReplicaRun run_of(const Graph& graph, std::vector<std::int64_t> shares) {
  ReplicaRun run{.graph = graph, .shares = std::move(shares)};
  run.reduction = Reduction::adasum;
  run.steps = 6;
  return run;
}

// Combines the replicas' gradients parameter by parameter; statistics are averaged over all samples.
Values plain_tree(const ParameterSet& parameters, std::vector<Values> ranks, const std::vector<double>& share) {
  for (const Parameter& p : parameters.all())
    for (std::size_t r = 0; r < ranks.size() && p.kind == ParameterKind::statistic; ++r)
      for (std::int64_t i = p.begin; i < p.end(); ++i) ranks[r][static_cast<std::size_t>(i)] *= share[r];
  const auto into = [&](Values& a, const Values& b) {
    for (const Parameter& p : parameters.all()) {
      const auto begin = static_cast<std::size_t>(p.begin), end = static_cast<std::size_t>(p.end());
      double aa = 0, ab = 0, bb = 0;
      for (std::size_t i = begin; i < end; ++i) aa += a[i] * a[i], ab += a[i] * b[i], bb += b[i] * b[i];
      const bool sum = p.kind == ParameterKind::statistic || aa == 0 || bb == 0;
      for (std::size_t i = begin; i < end; ++i)
        a[i] = sum ? a[i] + b[i] : (1 - ab / (2 * aa)) * a[i] + (1 - ab / (2 * bb)) * b[i];
    }
  };
  std::size_t p = 1;
  while (2 * p <= ranks.size()) p *= 2;
  for (std::size_t r = 0; ranks.size() > p; ++r) {
    into(ranks[r], ranks[r + 1]);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(r) + 1);
  }
  for (std::size_t apart = 1; apart < p; apart *= 2)
    for (std::size_t r = 0; r < p; r += 2 * apart) into(ranks[r], ranks[r + apart]);
  return ranks[0];
}

Values simulate(const ReplicaRun& run) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const std::int64_t share : run.shares) trainers.push_back(std::make_unique<Trainer>(run.graph, share));
  Values weights = trainers[0]->read_weights(), momentum(weights.size());
  for (int step = 0; step < run.steps; ++step) {
    const PlainBatch all = step_batch(run, step);
    std::vector<Values> gradients;
    std::vector<double> shares;
    std::int64_t first = 0;
    for (std::size_t r = 0; r < trainers.size(); first += run.shares[r++]) {
      Trainer& trainer = *trainers[r];
      for (std::size_t i = 0; i < weights.size(); ++i) trainer.write_weight(static_cast<std::int64_t>(i), weights[i]);
      const PlainBatch batch = part_of(all, first, run.shares[r]);
      trainer.set_step(step);
      trainer.gradients(batch, batch.weight() > 0 ? batch.weight() : 1, true);
      gradients.push_back(trainer.read_gradients());
      shares.push_back(batch.weight() / all.weight());
    }
    const Values reduced = plain_tree(run.graph.parameters(), gradients, shares);
    for (const Parameter& p : run.graph.parameters().all())
      for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i) {
        if (p.kind == ParameterKind::statistic) {
          weights[i] = (1 - p.momentum) * weights[i] + p.momentum * reduced[i];
          continue;
        }
        momentum[i] = run.momentum * momentum[i] + reduced[i] + (p.decays ? run.weight_decay * weights[i] : 0);
        weights[i] -= run.learning_rate * momentum[i];
      }
  }
  return weights;
}

}  // namespace

TEST_CASE("gradients reduced by Adasum have the weights of a plain tree, the same bits and the bytes of the formula",
          "[contract][adasum]") {
  for (const NamedGraph& model : {NamedGraph{"cnn_32_64", small_cnn()}, {"batch_norm", small_batch_norm_net()}})
    for (const std::vector<std::int64_t>& shares :
         {std::vector<std::int64_t>{4}, {2, 2}, {1, 3, 2}, {2, 2, 2, 2}, {2, 1, 1, 3, 2}})
      for (const bool holes : {false, true}) {
        CAPTURE(model.name, shares.size(), holes);
        ReplicaRun run = run_of(model.graph, shares);
        run.holes = holes;
        const ReplicaResult result = train_replicas(run);
        for (const std::uint64_t checksum : result.checksums) CHECK(checksum == result.checksums.front());
        CHECK(tensor_distance(run.graph.parameters(), result.weights, simulate(run)) <= kDouble);
        std::size_t p = 1, rounds = 0;
        while (2 * p <= shares.size()) p *= 2, ++rounds;
        const auto times = static_cast<double>(p * rounds + 2 * (shares.size() - p));
        CHECK(result.sent_bytes == times * static_cast<double>(run.graph.parameters().elems() * 8 * run.steps));
        CHECK(result.sent_bytes == result.formula_bytes * run.steps);
      }
}

TEST_CASE("Adasum: the same bits for every overlap, staged from a device of its own memory, and after a resume",
          "[contract][adasum]") {
  ReplicaRun run = run_of(small_batch_norm_net(), {2, 1, 2});
  const Values layers = train_replicas(run).weights;
  for (const Overlap overlap : {Overlap::none, Overlap::buckets}) {
    run.overlap = overlap;
    CHECK(train_replicas(run).weights == layers);
  }
  run.device = "discrete";
  CHECK(train_replicas(run).weights == layers);
  run.device = "reference", run.resume_at = 3;
  CHECK(train_replicas(run).weights == layers);
}

TEST_CASE("Adasum of one replica is one replica; of several it is no sum", "[contract][adasum]") {
  ReplicaRun alone{.graph = small_cnn(), .shares = {4}};
  const Values one = train_replicas(alone).weights;
  alone.reduction = Reduction::adasum;
  CHECK(train_replicas(alone).weights == one);
  ReplicaRun two{.graph = small_cnn(), .shares = {2, 2}};
  const Values summed = train_replicas(two).weights;
  two.reduction = Reduction::adasum;
  CHECK(tensor_distance(two.graph.parameters(), train_replicas(two).weights, summed) > 1e-3);
}

TEST_CASE("Adasum sends tables of sparse embeddings whole", "[contract][adasum]") {
  for (const NamedGraph& model : small_sequence_models()) {
    CAPTURE(model.name);
    ReplicaRun run = run_of(model.graph, {1, 2, 1});
    run.momentum = 0, run.weight_decay = 0;
    const ReplicaResult result = train_replicas(run);
    CHECK(tensor_distance(run.graph.parameters(), result.weights, simulate(run)) <= kDouble);
  }
}

}  // namespace echelon
