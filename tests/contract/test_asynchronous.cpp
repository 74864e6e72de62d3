// SPDX-License-Identifier: Apache-2.0
// Strategies "asynchronous" and "stale_synchronous" where their weights are known: with one worker, and in lock-step,
// which is synchronous training. Other tests hold for any order: one model at meetings, bytes by formula, nothing lost.
// tests/unit/exchange/test_async_protocol.cpp tests the protocol against its definitions, test_async_served.cpp a
// server's arithmetic.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/small_models.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;

ReplicaRun run_of(std::vector<std::int64_t> shares) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = "asynchronous";
  return run;
}

}  // namespace

TEST_CASE("one asynchronous worker is one replica, by every rule", "[contract][asynchronous]") {
  for (const std::string rule : {"sgd", "adam", "lars", "lamb", "rmsprop"})
    for (const double clip_norm : {0.0, 0.1}) {
      CAPTURE(rule, clip_norm);
      ReplicaRun run = run_of({4});
      run.rule = rule, run.clip_norm = clip_norm;
      const std::vector<double> asynchronous = train_replicas(run).weights;
      run.strategy = "synchronous";
      CHECK(train_replicas(run).weights == asynchronous);
    }
}

TEST_CASE("in lock-step, with shares of plain SGD, asynchronous training is synchronous", "[contract][asynchronous]") {
  for (const NamedGraph& model : small_models())
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{2, 2}, {1, 3, 2}, {2, 2, 2, 2}})
      for (const bool soft : {false, true})
        for (const auto& [servers, dedicated] : {std::pair{0, 0}, {1, 0}, {0, 1}}) {
          CAPTURE(model.name, shares.size(), soft, servers, dedicated);
          ReplicaRun run{.graph = model.graph, .shares = shares};
          run.momentum = 0, run.steps = 6, run.holes = soft;
          const ReplicaResult synchronous = train_replicas(run);
          run.strategy = "stale_synchronous", run.servers = servers, run.server_ranks = dedicated;
          run.bound = 0;
          if (soft) run.asynchronous.soft = static_cast<std::int64_t>(shares.size());
          const ReplicaResult result = train_replicas(run);
          check_one_model(result);
          CHECK(tensor_distance(run.graph.parameters(), result.weights, synchronous.weights) <= kDouble);
          CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
        }
}

TEST_CASE(
    "in lock-step, where servers have the states and apply all updates of a clock together, asynchronous "
    "training is synchronous by any rule",
    "[contract][asynchronous]") {
  for (const std::string rule : {"sgd", "adam", "adamw", "rmsprop"})
    for (const Graph& graph : {small_cnn(), small_batch_norm_net()})
      for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{2, 2}, {1, 3, 2}})
        for (const auto& [servers, dedicated] : {std::pair{0, 0}, {1, 0}, {0, 1}, {0, 2}}) {
          CAPTURE(rule, shares.size(), servers, dedicated);
          ReplicaRun run{.graph = graph, .shares = shares};
          run.rule = rule, run.steps = 8, run.learning_rate = rule == "sgd" ? 0.05 : 0.003;
          const ReplicaResult synchronous = train_replicas(run);
          run.strategy = "stale_synchronous", run.servers = servers, run.server_ranks = dedicated;
          run.bound = 0;
          run.asynchronous.soft = static_cast<std::int64_t>(shares.size());
          run.asynchronous.states = AsyncStates::server;
          run.asynchronous.delay_compensation = 0.5;  // without effect, as nothing is delayed
          const ReplicaResult result = train_replicas(run);
          check_one_model(result);
          CHECK(tensor_distance(run.graph.parameters(), result.weights, synchronous.weights) <= kDouble);
          CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
          run.resume_at = 5;
          const ReplicaResult resumed = train_replicas(run);
          CHECK(tensor_distance(run.graph.parameters(), resumed.weights, synchronous.weights) <= kDouble);
        }
}

TEST_CASE("servers with the optimiser's states refuse what looks at whole parameters", "[contract][asynchronous]") {
  for (const auto& [rule, clip_norm] : {std::pair<std::string, double>{"lars", 0}, {"lamb", 0}, {"sgd", 0.1}}) {
    CAPTURE(rule);
    ReplicaRun run = run_of({2, 2});
    run.rule = rule, run.clip_norm = clip_norm;
    run.asynchronous.states = AsyncStates::server;
    CHECK_THROWS_WITH(train_replicas(run), Catch::Contains("use states = \"worker\""));
  }
}

TEST_CASE("asynchronous workers meet with one model and have sent what the formula says, by any rules",
          "[contract][asynchronous]") {
  std::vector<AsynchronousKeys> rules(8);
  rules[1].soft = 2;
  rules[2].drop_above = 1;
  rules[3].staleness_scale = 0.5, rules[3].rate = AsyncRate::full;
  rules[4].rate = AsyncRate::sqrt;
  rules[5] = {.soft = 3, .drop_above = 2, .staleness_scale = 1};
  rules[6].states = AsyncStates::server, rules[6].delay_compensation = 0.1;
  rules[7] = {.soft = 2, .states = AsyncStates::server, .delay_compensation = 0.1, .compensation_decay = 0.9};
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (const std::string device : {"reference", "discrete"}) {
      CAPTURE(i, device);
      ReplicaRun run = run_of({2, 1, 3, 2});
      run.asynchronous = rules[i], run.device = device, run.learning_rate = 0.02;
      run.server_ranks = static_cast<int>(i % 3);
      const std::string strategy = i % 2 == 0 ? "stale_synchronous" : "asynchronous";
      run.strategy = strategy, run.bound = static_cast<std::int64_t>(i % 4);
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
      run.resume_at = 7;
      check_one_model(train_replicas(run));
      run.strategy = "synchronous", run.resume_at = -1, run.server_ranks = 0;
      CHECK(result.weights != train_replicas(run).weights);
    }
}

TEST_CASE("asynchronous workers clip, and adapt to whole parameters, by their own gradients",
          "[contract][asynchronous]") {
  for (const std::string rule : {"sgd", "lars", "lamb"}) {
    CAPTURE(rule);
    ReplicaRun run = run_of({2, 2, 2});
    run.rule = rule, run.clip_norm = 0.1, run.learning_rate = 0.01;
    const ReplicaResult result = train_replicas(run);
    check_one_model(result);
    CHECK(result.gradient_norm > 0);
  }
}

}  // namespace echelon
