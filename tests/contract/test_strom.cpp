// SPDX-License-Identifier: Apache-2.0
// Strategy "strom", decentralised exchange of compressed updates. Synchronous rounds are compared with a plain loop
// over simulated replicas in double, and with synchronous training where whole updates are sent; asynchronous rounds
// are checked for what holds in any order. tests/unit/exchange/test_strom_protocol.cpp tests the protocol against its
// definitions.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/local_sgd.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;
constexpr std::int64_t kAlways = 1'000'000;

ReplicaRun run_of(std::vector<std::int64_t> shares, const StromKeys& keys) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = "strom";
  run.strom = keys;
  return run;
}

// By definition residuals accumulate updates, and entries beyond tau change everybody's weights by +-tau.
std::vector<double> simulate(const ReplicaRun& run) {
  LocalWorkers workers(run);
  const float tau = static_cast<float>(run.strom.tau);
  std::vector<double> weights = workers.weights(0);
  std::vector<std::vector<double>> residual(run.shares.size(), std::vector<double>(weights.size()));
  for (int step = 0; step < run.steps; ++step) {
    for (int w = 0; w < workers.size(); ++w) workers.weights(w) = weights;
    workers.step(step);
    std::vector<double> next = weights;
    for (int w = 0; w < workers.size(); ++w) {
      std::vector<double>& r = residual[static_cast<std::size_t>(w)];
      for (std::size_t i = 0; i < r.size(); ++i) {
        r[i] += workers.share(w) * (workers.weights(w)[i] - weights[i]);
        double sent = std::abs(static_cast<float>(r[i])) >= tau ? std::copysign(double{tau}, r[i]) : 0;
        if (step < run.strom.warmup_steps) sent = r[i];
        r[i] -= sent;
        next[i] += sent;
      }
    }
    weights = next;
  }
  return weights;
}

}  // namespace

TEST_CASE("synchronous decentralised exchange has the weights of simulated replicas, of one too", "[contract][strom]") {
  for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 2}, {1, 3, 2}, {1, 2, 1, 3, 1}})
    for (const std::int64_t warmup : {0, 3}) {
      CAPTURE(shares.size(), warmup);
      ReplicaRun run = run_of(shares, {.tau = 2e-3, .warmup_steps = warmup});
      const std::vector<double> wanted = simulate(run);
      run.strom.tau = 1e-9;
      CHECK(tensor_distance(run.graph.parameters(), wanted, simulate(run)) > 1e-3);  // so tau matters here
      run.strom.tau = 2e-3;
      std::vector<double> first;
      for (const StromTopology topology : {StromTopology::all, StromTopology::ring})
        for (const StromIndices indices : {StromIndices::raw, StromIndices::entropy}) {
          run.strom.topology = topology, run.strom.indices = indices;
          const ReplicaResult result = train_replicas(run);
          check_one_model(result);
          CHECK(tensor_distance(run.graph.parameters(), result.weights, wanted) <= kDouble);
          if (first.empty()) first = result.weights;
          CHECK(result.weights == first);  // equal to the bit on every path
          CHECK((result.sent_bytes > 0) == (shares.size() > 1));
        }
    }
}

TEST_CASE("where whole updates are sent, synchronous decentralised exchange of plain SGD is synchronous training",
          "[contract][strom]") {
  for (const NamedGraph& model :
       {NamedGraph{"cnn_32_64", small_cnn()}, {"batch_norm", small_batch_norm_net()}, {"dropout", small_dropout_net()}})
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{2, 2}, {1, 3, 2}})
      for (const bool holes : {false, true}) {
        CAPTURE(model.name, shares.size(), holes);
        ReplicaRun run = run_of(shares, {.warmup_steps = kAlways});
        run.graph = model.graph, run.holes = holes, run.steps = 8;
        const ReplicaResult result = train_replicas(run);
        check_one_model(result);
        run.strategy = "synchronous";
        CHECK(tensor_distance(run.graph.parameters(), result.weights, train_replicas(run).weights) <= kDouble);
        const double k = run.replicas(), values = static_cast<double>(run.graph.parameters().elems());
        CHECK(result.sent_bytes > 8 * k * (k - 1) * values * 8);  // k (k-1) messages of all values, plus statistics
        CHECK(result.sent_bytes < 8 * k * (k - 1) * (values * 8 + 600));
      }
}

TEST_CASE("replicas are equal to the bit in f32, with a tau that adapts, statistics and a device of its own memory",
          "[contract][strom]") {
  for (const StromRounds rounds : {StromRounds::synchronous, StromRounds::asynchronous})
    for (const std::string device : {"reference", "onednn", "discrete"})
      for (const StromTopology topology : {StromTopology::all, StromTopology::ring}) {
        CAPTURE(static_cast<int>(rounds), device, static_cast<int>(topology));
        ReplicaRun run = run_of({2, 1, 3, 2}, {.rounds = rounds, .topology = topology, .density = 0.02});
        run.graph = small_batch_norm_net();
        run.device = device, run.dtype = run.activations = DType::f32;
        run.strom.warmup_steps = 2;
        const ReplicaResult result = train_replicas(run);
        check_one_model(result);
        CHECK(result.sent_bytes > 0);
        CHECK(std::isnan(result.formula_bytes));
      }
}

TEST_CASE("a synchronous run of decentralised exchange is resumed to the same bits; asynchronous replicas still meet",
          "[contract][strom]") {
  for (const std::size_t k : {1, 3})
    for (const double tau : {0.0, 2e-3})
      for (const DType dtype : {DType::f64, DType::f32}) {
        CAPTURE(k, tau, static_cast<int>(dtype));
        ReplicaRun run = run_of(std::vector<std::int64_t>(k, 2), {.tau = tau});
        run.dtype = run.activations = dtype;
        const ReplicaResult whole = train_replicas(run);
        run.resume_at = 7;
        CHECK(train_replicas(run).weights == whole.weights);
        run.strom.rounds = StromRounds::asynchronous;
        check_one_model(train_replicas(run));
      }
}

TEST_CASE("one asynchronous replica is one synchronous one, and sends nothing", "[contract][strom]") {
  ReplicaRun run = run_of({4}, {.tau = 2e-3});
  const ReplicaResult synchronous = train_replicas(run);
  run.strom.rounds = StromRounds::asynchronous;
  const ReplicaResult result = train_replicas(run);
  CHECK(result.weights == synchronous.weights);
  CHECK(result.sent_bytes == 0);
  CHECK(result.formula_bytes == 0);
}

TEST_CASE("norms of decentralised exchange are those of a replica's own gradients", "[contract][strom]") {
  for (const std::string rule : {"sgd", "lars", "lamb"})
    for (const StromRounds rounds : {StromRounds::synchronous, StromRounds::asynchronous}) {
      CAPTURE(rule, static_cast<int>(rounds));
      ReplicaRun run = run_of({2, 2, 2}, {.rounds = rounds});
      run.rule = rule, run.clip_norm = 0.1, run.learning_rate = 0.01;
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      CHECK(result.gradient_norm > 0);
    }
}

TEST_CASE("a smaller density sends fewer bytes", "[contract][strom]") {
  double more = 1e300;
  for (const double density : {0.5, 0.1, 0.02}) {
    ReplicaRun run = run_of({2, 2, 2}, {.density = density, .indices = StromIndices::raw});
    const double bytes = train_replicas(run).sent_bytes;
    CHECK(bytes < more / 1.5);
    more = bytes;
  }
}

}  // namespace echelon
