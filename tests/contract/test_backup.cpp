// SPDX-License-Identifier: Apache-2.0
// Strategy "backup": without backup workers it is synchronous training; with them every step equals what a plain loop
// in one process makes of the replicas that entered it. tests/unit/exchange/test_backup_protocol.cpp tests the protocol
// against its definition.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/one_model.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/small_models.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;

ReplicaRun run_of(std::vector<std::int64_t> shares, std::int64_t backups) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = "backup", run.backup.replicas = backups;
  return run;
}

// Returns for each step the replicas whose gradients entered, ascending.
std::vector<std::vector<std::size_t>> entered_of(const ReplicaResult& result, int steps) {
  std::vector<std::vector<std::size_t>> entered(static_cast<std::size_t>(steps));
  for (std::size_t r = 0; r < result.taken.size(); ++r)
    for (const TakenStep& taken : result.taken[r])
      if (taken.entered) entered.at(static_cast<std::size_t>(taken.step)).push_back(r);
  return entered;
}

// Repeats the steps in one process: adds the gradients of the replicas that entered, over their samples, and takes
// steps of SGD with momentum and weight decay. Running statistics move like a mean over the same samples.
std::vector<double> replay(const ReplicaRun& run, const std::vector<std::vector<std::size_t>>& entered) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const std::int64_t share : run.shares) trainers.push_back(std::make_unique<Trainer>(run.graph, share));
  std::vector<double> weights = trainers[0]->read_weights();
  std::vector<double> momentum(weights.size());
  for (std::size_t t = 0; t < entered.size(); ++t) {
    const PlainBatch all = step_batch(run, static_cast<std::int64_t>(t));
    std::vector<PlainBatch> parts;
    std::int64_t first = 0;
    for (const std::int64_t share : run.shares) parts.push_back(part_of(all, first, share)), first += share;
    double weight = 0;
    for (const std::size_t r : entered[t]) weight += parts[r].weight();
    std::vector<double> sum(weights.size());
    for (const std::size_t r : entered[t]) {
      for (std::size_t i = 0; i < weights.size(); ++i)
        trainers[r]->write_weight(static_cast<std::int64_t>(i), weights[i]);
      trainers[r]->set_step(static_cast<std::int64_t>(t), static_cast<double>(all.n()));
      trainers[r]->gradients(parts[r], weight, true);
      const std::vector<double> own = trainers[r]->read_gradients();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    }
    for (const Parameter& p : run.graph.parameters().all())
      for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i) {
        if (p.kind == ParameterKind::statistic) {
          weights[i] = (1 - p.momentum) * weights[i] + p.momentum * sum[i];
          continue;
        }
        momentum[i] = run.momentum * momentum[i] + sum[i] + (p.decays ? run.weight_decay * weights[i] : 0);
        weights[i] -= run.learning_rate * momentum[i];
      }
  }
  return weights;
}

}  // namespace

TEST_CASE("without backup workers the strategy is synchronous training", "[contract][backup]") {
  for (const NamedGraph& model : small_models())
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 2}, {1, 3, 2}, {2, 2, 2, 2}})
      for (const auto& [servers, server_ranks] : {std::pair(0, 0), {1, 0}, {0, 2}}) {
        CAPTURE(model.name, shares.size(), servers, server_ranks);
        ReplicaRun run = run_of(shares, 0);
        run.graph = model.graph;
        run.steps = 6, run.holes = servers == 1, run.servers = servers, run.server_ranks = server_ranks;
        const ReplicaResult result = train_replicas(run);
        run.strategy = "synchronous", run.servers = run.server_ranks = 0;
        const ReplicaResult synchronous = train_replicas(run), one = train_replicas(on_one_replica(run, true));
        check_one_model(result);
        CHECK(tensor_distance(run.graph.parameters(), result.weights, synchronous.weights) <= kDouble);
        if (std::string(model.name) != "batch_norm")
          CHECK(tensor_distance(run.graph.parameters(), result.weights, one.weights) <= kDouble);
      }
}

TEST_CASE("without backup workers every rule that updates parts takes synchronous steps", "[contract][backup]") {
  for (const std::string rule : {"sgd", "adam", "adamw", "rmsprop"})
    for (const std::string device : {"reference", "discrete"}) {
      CAPTURE(rule, device);
      ReplicaRun run = run_of({1, 3, 2}, 0);
      run.rule = rule, run.device = device, run.learning_rate = 0.01;
      const ReplicaResult result = train_replicas(run);
      run.strategy = "synchronous";
      CHECK(tensor_distance(run.graph.parameters(), result.weights, train_replicas(run).weights) <= kDouble);
    }
}

TEST_CASE("every step is the mean over the samples of the replicas that entered it", "[contract][backup]") {
  struct Case {
    Graph graph;
    std::vector<std::int64_t> shares;
    std::int64_t backups;
    int servers, server_ranks = 0;
  };
  const std::vector<Case> cases = {
      {small_cnn(), {2, 2, 2, 2}, 1, 0},         {small_digits_cnn(), {1, 3, 2}, 2, 1},
      {small_batch_norm_net(), {2, 3, 2}, 1, 2}, {small_sequence_models()[0].graph, {2, 2, 2, 1}, 2, 0},
      {small_cnn(), {2, 1, 2}, 1, 0, 1},         {small_batch_norm_net(), {2, 2, 3}, 1, 0, 2}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const std::string device : {"reference", "discrete"}) {
      CAPTURE(i, device, test_seed());
      ReplicaRun run = run_of(cases[i].shares, cases[i].backups);
      run.graph = cases[i].graph, run.servers = cases[i].servers, run.device = device;
      run.server_ranks = cases[i].server_ranks;
      run.steps = 16, run.holes = i % 2 == 1, run.pause_s = 6e-3;
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      const auto entered = entered_of(result, run.steps);
      std::size_t dropped = 0;
      for (const std::vector<std::size_t>& step : entered)
        CHECK(step.size() == cases[i].shares.size() - static_cast<std::size_t>(cases[i].backups));
      for (const std::vector<TakenStep>& replica : result.taken)
        for (const TakenStep& taken : replica) dropped += taken.entered ? 0 : 1;
      CHECK(dropped > 0);
      CHECK(tensor_distance(run.graph.parameters(), result.weights, replay(run, entered)) <= kDouble);
      CHECK(std::isnan(result.formula_bytes) == (run.server_ranks > 0));
      if (run.server_ranks == 0) CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
    }
}

TEST_CASE("a run with backup workers is resumed with all states, whatever was dropped", "[contract][backup]") {
  for (const std::string rule : {"sgd", "adam"})
    for (const std::string device : {"reference", "discrete"}) {
      CAPTURE(rule, device);
      ReplicaRun run = run_of({1, 3, 2}, 0);
      run.rule = rule, run.device = device, run.learning_rate = 0.01;
      const std::vector<double> whole = train_replicas(run).weights;
      run.resume_at = 7;
      CHECK(train_replicas(run).weights == whole);
      run.server_ranks = 2;
      CHECK((train_replicas(run).weights == whole));
      run.server_ranks = 0;
      if (rule != "sgd") continue;
      run.backup.replicas = 1, run.pause_s = 3e-3;
      const ReplicaResult late = train_replicas(run);
      check_one_model(late);
      CHECK(tensor_distance(run.graph.parameters(), late.weights, replay(run, entered_of(late, run.steps))) <= kDouble);
    }
}

TEST_CASE("rules and codecs that a part of the weights is not enough for are refused", "[contract][backup]") {
  ReplicaRun run = run_of({2, 2}, 1);
  run.steps = 1;
  SECTION("lamb") { run.rule = "lamb"; }
  SECTION("clipping") { run.clip_norm = 1; }
  SECTION("codec") { run.codec = "fp16"; }
  SECTION("as many as there are") { run.backup.replicas = 2; }
  CHECK_THROWS_WITH(train_replicas(run), Catch::Contains("backup"));
}

}  // namespace echelon
